#include "split/devices/kinds.h"

#include <fmt/core.h>

#include "base/invariant.h"

namespace fermata::split::devices {
namespace {

bool is_adapter(const std::string& path) { return path.starts_with("/dev/infiniband/"); }
std::string refuse_open_adapter(const std::string& path) {
    return path +
           ": the program itself talks to the adapter, and what it holds there cannot be saved; "
           "close it before a checkpoint";
}

bool any(const std::string&) { return true; }
// A device that is only open is opened again (process/descriptors/device.cpp).
std::string take_open(const std::string&) { return {}; }
std::string refuse_mapped(const std::string& path, uint64_t address) {
    return fmt::format("device {} mapped at {:#x}: memory of devices cannot be saved", path, address);
}

constexpr Kind kKinds[] = {
    {"adapter", is_adapter, refuse_open_adapter, refuse_mapped, nullptr, nullptr},
    {"other", any, take_open, refuse_mapped, nullptr, nullptr},
};

}  // namespace

const Kind& kind_of(const std::string& path) {
    for (const Kind& kind : kKinds)
        if (kind.owns(path)) return kind;
    always(false, "a device of no kind");
    return kKinds[0];
}

void capture_all() {
    for (const Kind& kind : kKinds)
        if (kind.capture != nullptr) kind.capture();
}

void restore_all() {
    for (const Kind& kind : kKinds)
        if (kind.restore != nullptr) kind.restore();
}

}  // namespace fermata::split::devices
