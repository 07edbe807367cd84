#include "front/logged/bytes.h"

#include "front/core/fatal.h"
#include "front/objects/api.h"
#include "front/requests/engine.h"

namespace fermata::front::logged {
namespace {

bool is_dense(const TypeObject* type) noexcept { return type->predefined && type->size == type->extent; }

// Not over a stop point: real handles.
mpi::RealComm self() noexcept { return real_of(&comm_self); }

}  // namespace

void pack(const Block& block, replay::Bytes* out) noexcept {
    const int64_t bytes = block.bytes();
    if (bytes <= 0) return;
    const size_t begin = out->size();
    if (is_dense(block.type)) {
        const auto* data = static_cast<const uint8_t*>(block.at);
        out->insert(out->end(), data, data + bytes);
        return;
    }
    Count room = 0, used = 0;
    if (LOWER(Pack_size)(block.count, real_of(block.type), self(), &room) != 0 || room < bytes) room = bytes;
    out->resize(begin + static_cast<size_t>(room));
    if (LOWER(Pack)(block.at, block.count, real_of(block.type), out->data() + begin, room, &used, self()) !=
            0 ||
        used != bytes)
        fatal_line("fermata: data of the program cannot be packed for its message log");
    out->resize(begin + static_cast<size_t>(bytes));
}

void unpack(const Block& block, const uint8_t* data, int64_t size) noexcept {
    if (size <= 0 || block.type == nullptr) return;
    const int64_t room = block.bytes();
    if (size > room) size = room;
    if (is_dense(block.type)) {
        __builtin_memcpy(block.at, data, static_cast<size_t>(size));
        return;
    }
    if (block.type->size > 0 && size % block.type->size == 0) {
        Count used = 0;
        if (LOWER(Unpack)(data, size, &used, block.at, size / block.type->size, real_of(block.type),
                          self()) == 0)
            return;
    }
    // A message that ends inside an element: the library's receive knows what that means.
    QueuedMessage message{};
    message.bytes = size;
    message.data = reinterpret_cast<char*>(const_cast<uint8_t*>(data));
    SpinGuard guard(library_lock);
    if (deliver(&message, block.at, block.count, block.type, nullptr) != 0)
        fatal_line("fermata: a message of the log does not fit the receive that takes it");
}

}  // namespace fermata::front::logged
