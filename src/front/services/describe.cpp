// All objects of this rank as records for people. On the agent, all threads stopped.
#include "front/services/describe.h"

#include <cstring>

#include "front/objects/internal.h"
#include "front/requests/engine.h"
#include "front/requests/message.h"
#include "front/requests/nonblocking.h"
#include "split/mpi_objects.h"

namespace fermata::front {
namespace {

using split::ObjectRecord;

class Records {
  public:
    Records(void* out, size_t capacity) : out_(static_cast<char*>(out)), capacity_(capacity) {
        at_ = sizeof header_;
        header_.version = split::kObjectsVersion;
    }
    void add(Kind kind, ObjectRecord record, const char* name = "", size_t size = 0) noexcept {
        if (header_.counts[static_cast<uint32_t>(kind)]++ >= split::kNamedObjects) return;
        record.kind = static_cast<uint32_t>(kind);
        record.name = static_cast<uint32_t>(size);
        put(&record, sizeof record);
        put(name, size);
        static constexpr char kZeros[8] = {};
        put(kZeros, -size & 7);
        header_.records++;
    }
    void add(Kind kind, const ObjectRecord& record, const Text& name) noexcept {
        add(kind, record, name.data(), name.size());
    }
    size_t end() noexcept {
        if (capacity_ >= sizeof header_) std::memcpy(out_, &header_, sizeof header_);
        return at_;
    }

  private:
    void put(const void* data, size_t size) noexcept {
        if (size <= capacity_ && at_ <= capacity_ - size) std::memcpy(out_ + at_, data, size);
        at_ += size;
    }
    char* out_;
    size_t capacity_, at_;
    split::ObjectsHeader header_{};
};

ObjectRecord record_of(const Object& object) noexcept {
    ObjectRecord record{};
    record.handle = object.handle;
    if (object.predefined) record.flags |= split::kObjectPredefined;
    return record;
}

void add_comm(Records& records, const CommObject& comm) noexcept {
    ObjectRecord record = record_of(comm);
    record.sort = comm.topology != nullptr ? static_cast<uint32_t>(comm.topology->kind) : 0;
    if (comm.freed) record.flags |= split::kObjectFreed;
    if (comm.inter) record.flags |= split::kObjectInter;
    record.numbers[0] = comm.size;
    record.numbers[1] = comm.rank;
    record.numbers[2] = comm.remote_size;
    record.attributes = static_cast<uint32_t>(comm.attributes.size());
    records.add(Kind::comm, record, comm.name);
}

split::RequestSort sort_of(What what) noexcept {
    using split::RequestSort;
    switch (what) {
        case What::none:
            return RequestSort::none;
        case What::send:
            return RequestSort::send;
        case What::recv:
            return RequestSort::receive;
        case What::collective:
            return RequestSort::collective;
        case What::generalized:
            return RequestSort::generalized;
        case What::sendrecv:
            return RequestSort::sendrecv;
        case What::partitioned_send:
            return RequestSort::partitioned_send;
        case What::foreign:
        case What::of_file:
            return RequestSort::one_sided_or_file;
        case What::done:
            return RequestSort::done;
    }
    return RequestSort::none;
}

void add_request(Records& records, const RequestObject& request) noexcept {
    if (request.flags & kInternal) return;
    ObjectRecord record = record_of(request);
    record.sort = static_cast<uint32_t>(sort_of(request.what));
    if (request.flags & kPersistent) record.flags |= split::kObjectPersistent;
    if (request.flags & kOrphan) record.flags |= split::kObjectFreed;
    record.numbers[0] = request.peer;
    record.numbers[1] = request.tag;
    record.numbers[2] = request.mode;
    record.numbers[3] = static_cast<int32_t>(request.state);
    record.amount = request.count;
    const char* name = "";
    if (request.what == What::collective && request.collective != nullptr) name = request.collective->name;
    records.add(Kind::request, record, name, name != nullptr ? std::strlen(name) : 0);
}

}  // namespace

size_t describe_objects(void* out, size_t capacity) noexcept {
    Records records(out, capacity);
    if (comm_world.handle != 0) {
        add_comm(records, comm_world);
        add_comm(records, comm_self);
    }
    for (const CommObject* comm = first_comm(); comm != nullptr; comm = comm->next) add_comm(records, *comm);
    for_each_object(Kind::group, [&](Object* object) {
        ObjectRecord record = record_of(*object);
        record.numbers[0] = static_cast<int32_t>(static_cast<GroupObject*>(object)->members.size());
        records.add(Kind::group, record);
    });
    for (const TypeObject* type = first_type(); type != nullptr; type = type->next) {
        ObjectRecord record = record_of(*type);
        record.sort = static_cast<uint32_t>(type->combiner);
        if (type->committed) record.flags |= split::kObjectCommitted;
        if (type->handle == 0) record.flags |= split::kObjectFreed;
        record.numbers[0] = static_cast<int32_t>(type->types.size());
        record.amount = type->size;
        record.attributes = static_cast<uint32_t>(type->attributes.size());
        records.add(Kind::datatype, record, type->name);
    }
    for (const OpObject* op = first_op(); op != nullptr; op = op->next) {
        ObjectRecord record = record_of(*op);
        if (op->commutes) record.flags |= split::kObjectCommutes;
        if (op->freed) record.flags |= split::kObjectFreed;
        records.add(Kind::op, record);
    }
    for_each_request([&](RequestObject* request) { add_request(records, *request); });
    engine.queue.for_each([&](QueuedMessage* message) {
        ObjectRecord record{};
        record.numbers[0] = message->source;
        record.numbers[1] = message->tag;
        record.amount = message->bytes;
        if (message->held) record.flags |= split::kObjectHeld;
        records.add(Kind::message, record);
    });
    for_each_object(Kind::message, [&](Object* object) {
        auto* message = static_cast<MessageObject*>(object);
        ObjectRecord record = record_of(*message);
        record.numbers[0] = message->source;
        record.numbers[1] = message->tag;
        record.amount = message->bytes;
        records.add(Kind::message, record);
    });
    for (const WinObject* win = first_win(); win != nullptr; win = win->next) {
        ObjectRecord record = record_of(*win);
        record.sort = static_cast<uint32_t>(win->flavor);
        record.numbers[0] = win->comm != nullptr ? win->comm->size : 0;
        record.numbers[1] = win->disp_unit;
        record.amount = win->size;
        record.attributes = static_cast<uint32_t>(win->attributes.size());
        records.add(Kind::win, record, win->name);
    }
    for (const FileObject* file = first_file(); file != nullptr; file = file->next) {
        ObjectRecord record = record_of(*file);
        record.sort = static_cast<uint32_t>(file->amode);
        record.numbers[0] = file->comm != nullptr ? file->comm->size : 0;
        records.add(Kind::file, record, file->path);
    }
    for_each_object(Kind::info, [&](Object* object) {
        ObjectRecord record = record_of(*object);
        record.numbers[0] = static_cast<int32_t>(static_cast<InfoObject*>(object)->pairs.size());
        records.add(Kind::info, record);
    });
    for (Kind kind : {Kind::errhandler, Kind::session, Kind::keyval})
        for_each_object(kind, [&](Object* object) { records.add(kind, record_of(*object)); });
    return records.end();
}

}  // namespace fermata::front
