#include "split/process/descriptors/saved.h"

namespace fermata::split::process::descriptors {

using nlohmann::json;

void to_json(json& json, const Number& one) { json = {one.fd, one.description, one.close_on_exec}; }
void from_json(const json& json, Number& one) {
    json.at(0).get_to(one.fd);
    json.at(1).get_to(one.description);
    json.at(2).get_to(one.close_on_exec);
}

void to_json(json& json, const Lock& one) { json = {one.kind, one.exclusive, one.start, one.length}; }
void from_json(const json& json, Lock& one) {
    json.at(0).get_to(one.kind);
    json.at(1).get_to(one.exclusive);
    json.at(2).get_to(one.start);
    json.at(3).get_to(one.length);
}

void to_json(json& json, const Watch& one) { json = {one.fd, one.events, one.data, one.description}; }
void from_json(const json& json, Watch& one) {
    json.at(0).get_to(one.fd);
    json.at(1).get_to(one.events);
    json.at(2).get_to(one.data);
    json.at(3).get_to(one.description);
}

void to_json(json& json, const Time& one) { json = {one.value.tv_sec, one.value.tv_nsec}; }
void from_json(const json& json, Time& one) {
    json.at(0).get_to(one.value.tv_sec);
    json.at(1).get_to(one.value.tv_nsec);
}

}  // namespace fermata::split::process::descriptors
