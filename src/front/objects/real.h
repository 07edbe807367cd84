// From the handles of the application to those of the real library: what every wrapper does to its arguments.
//
//     LOWER(Send)(buf, count, to_real(type), dest, tag, to_real(comm));
//
// Two dependent loads and a compare; no lock, no allocation. Null and unknown handles give the null handle,
// so that the real library reports the error. Groups and infos have no real counterpart: RealGroupFor and
// RealInfoFor (info.h) make one for the length of a call. Never keep a real handle over a stop point: a
// restart changes it.
#pragma once

#include "fermata_types.h"
#include "front/objects/comm.h"
#include "front/objects/datatype.h"
#include "front/objects/file.h"
#include "front/objects/info.h"
#include "front/objects/op.h"
#include "front/objects/win.h"

namespace fermata::front {

template <typename Real, typename Virtual>
__attribute__((always_inline)) inline Real real_word(Virtual handle, Kind kind) noexcept {
    const Object* object = find_object(static_cast<uint32_t>(handle), kind);
    return static_cast<Real>(__builtin_expect(object != nullptr, 1) ? object->real : 0);
}

__attribute__((always_inline)) inline mpi::RealComm to_real(mpi::Comm h) noexcept {
    return real_word<mpi::RealComm>(h, Kind::comm);
}
__attribute__((always_inline)) inline mpi::RealDatatype to_real(mpi::Datatype h) noexcept {
    return real_word<mpi::RealDatatype>(h, Kind::datatype);
}
__attribute__((always_inline)) inline mpi::RealOp to_real(mpi::Op h) noexcept {
    return real_word<mpi::RealOp>(h, Kind::op);
}
__attribute__((always_inline)) inline mpi::RealWin to_real(mpi::Win h) noexcept {
    return real_word<mpi::RealWin>(h, Kind::win);
}
__attribute__((always_inline)) inline mpi::RealFile to_real(mpi::File h) noexcept {
    return real_word<mpi::RealFile>(h, Kind::file);
}

__attribute__((always_inline)) inline CommObject* find(mpi::Comm h) noexcept {
    return find_comm(static_cast<uint32_t>(h));
}
inline TypeObject* find(mpi::Datatype h) noexcept { return find_type(static_cast<uint32_t>(h)); }
inline OpObject* find(mpi::Op h) noexcept { return find_op(static_cast<uint32_t>(h)); }
inline GroupObject* find(mpi::Group h) noexcept { return find_group(static_cast<uint32_t>(h)); }
inline InfoObject* find(mpi::Info h) noexcept { return find_info(static_cast<uint32_t>(h)); }
inline ErrhandlerObject* find(mpi::Errhandler h) noexcept {
    return find_errhandler(static_cast<uint32_t>(h));
}
inline WinObject* find(mpi::Win h) noexcept { return find_win(static_cast<uint32_t>(h)); }
inline FileObject* find(mpi::File h) noexcept { return find_file(static_cast<uint32_t>(h)); }

// The real handle of an object that has been looked up; null gives the null handle.
inline mpi::RealComm real_of(const CommObject* comm) noexcept {
    return static_cast<mpi::RealComm>(comm != nullptr ? comm->real : 0);
}
inline mpi::RealDatatype real_of(const TypeObject* type) noexcept {
    return static_cast<mpi::RealDatatype>(type != nullptr ? type->real : 0);
}
inline mpi::RealOp real_of(const OpObject* op) noexcept {
    return static_cast<mpi::RealOp>(op != nullptr ? op->real : 0);
}

// For the length of one real call: RealInfo real = temporary(info);
class TempInfo : public RealInfoFor {
  public:
    explicit TempInfo(mpi::Info h, bool to_be_filled = false) noexcept
        : RealInfoFor(static_cast<uint32_t>(h), to_be_filled) {}
    operator mpi::RealInfo() const noexcept { return static_cast<mpi::RealInfo>(word()); }
};
class TempGroup : public RealGroupFor {
  public:
    explicit TempGroup(mpi::Group h) noexcept : RealGroupFor(static_cast<uint32_t>(h)) {}
    explicit TempGroup(const Members& members) noexcept : RealGroupFor(members) {}
    operator mpi::RealGroup() const noexcept { return static_cast<mpi::RealGroup>(word()); }
};

}  // namespace fermata::front
