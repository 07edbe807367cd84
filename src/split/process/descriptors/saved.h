// Descriptors in the state, as lists without names: a type for each, and where its parts stand.
//
// The rest of the state is objects, read by name where it is used.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace fermata::split::process::descriptors {

// A number of the process: [number, description, close_on_exec].
struct Number {
    int fd;
    size_t description;
    bool close_on_exec;
};
void to_json(nlohmann::json& json, const Number& one);
void from_json(const nlohmann::json& json, Number& one);

// [kind in /proc/locks, exclusive, start, length].
struct Lock {
    std::string kind;
    bool exclusive;
    off_t start, length;  // length 0: to the end
};
void to_json(nlohmann::json& json, const Lock& one);
void from_json(const nlohmann::json& json, Lock& one);

// A watch of an epoll descriptor: [number, events, data, description].
struct Watch {
    int fd;
    uint32_t events;
    uint64_t data;
    size_t description;
};
void to_json(nlohmann::json& json, const Watch& one);
void from_json(const nlohmann::json& json, Watch& one);

// [seconds, nanoseconds].
struct Time {
    timespec value;
};
void to_json(nlohmann::json& json, const Time& one);
void from_json(const nlohmann::json& json, Time& one);

}  // namespace fermata::split::process::descriptors
