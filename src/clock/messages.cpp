#include "clock/messages.h"

namespace fermata::clock {

bool Reader::header(Header* out) {
    uint8_t version = get<uint8_t>();
    uint8_t kind = get<uint8_t>();
    uint16_t reserved = get<uint16_t>();
    Epoch epoch = get<uint32_t>();
    bool down = kind >= static_cast<uint8_t>(Kind::intent) && kind <= static_cast<uint8_t>(Kind::freeze);
    bool up = kind >= static_cast<uint8_t>(Kind::report) && kind <= static_cast<uint8_t>(Kind::safe);
    if (version != kMessageVersion || reserved != 0 || !(down || up)) fail();
    *out = Header{static_cast<Kind>(kind), epoch};
    return ok_;
}

bool Reader::entry(Entry* out) {
    Entry e;
    e.uid = static_cast<Uid>(u64());
    e.target = u64();
    e.least_obliged = u64();
    e.least_entered = u64();
    e.ranks = u32();
    e.size = u32();
    e.run_count = u32();
    e.run_bytes = at_;
    if (ok_ && e.run_count > left_ / kRunBytes) fail();
    for (uint32_t i = 0; ok_ && i < e.run_count; i++) {
        Run r = e.run(i);
        if (r.first < 0 || r.count <= 0 || r.first > INT32_MAX - r.count) fail();
    }
    if (!ok_) {
        *out = Entry{};
        return false;
    }
    at_ += e.run_count * kRunBytes;
    left_ -= e.run_count * kRunBytes;
    *out = e;
    return true;
}

}  // namespace fermata::clock
