// Records for people about a rank's MPI objects: blob `mpi` of an image, docs/formats/objects.md. Nothing of
// a restart depends on it.
#pragma once

#include <cstdint>

namespace fermata::split {

inline constexpr uint32_t kObjectsVersion = 1;
// So many objects of each kind are named; all are counted.
inline constexpr uint64_t kNamedObjects = 1000;

struct ObjectsHeader {
    uint32_t version;
    uint32_t records;
    uint64_t counts[16];  // by kind as in a handle (mpi::Kind); message: held, for MPI_Recv or MPI_Mrecv
};

// Then the name, without a final zero, and zeros up to a multiple of 8.
struct ObjectRecord {
    uint32_t kind;
    uint32_t handle;  // 0: freed by the application, or it never had one
    uint32_t sort;    // by kind, see below
    uint32_t flags;
    int32_t numbers[4];
    int64_t amount;
    uint32_t attributes;
    uint32_t name;  // bytes of it
};
static_assert(sizeof(ObjectsHeader) == 136 && sizeof(ObjectRecord) == 48);

//              sort                      numbers                                   amount
//   comm       topology (standard ABI)   size, rank, size of the remote group
//   group                                size
//   datatype   combiner (standard ABI)   types it is made of                     bytes in one
//   op
//   request    RequestSort               peer, tag, send mode, state               elements
//   message                              source, tag                               bytes
//   win        flavor (standard ABI)     members, unit                             bytes here
//   file       amode                     members
//   info                                 pairs
enum class RequestSort : uint32_t {
    none,
    send,
    receive,
    collective,
    generalized,
    sendrecv,
    partitioned_send,
    one_sided_or_file,
    done,
};
enum ObjectFlag : uint32_t {
    kObjectPredefined = 1,
    kObjectFreed = 2,
    kObjectPersistent = 4,
    kObjectInter = 8,
    kObjectCommitted = 16,
    kObjectCommutes = 32,
    kObjectHeld = 64,  // a message whose sender does not see it received
};

}  // namespace fermata::split
