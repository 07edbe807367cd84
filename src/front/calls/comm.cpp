// Questions about communicators, answered from their descriptions.
#include "front/objects/comm.h"

#include "front/objects/api.h"

namespace fermata::front {

extern "C" {

int fm_Comm_rank(Comm comm, int* rank) {
    Call call("MPI_Comm_rank");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *rank = object->rank;
    return FM_SUCCESS;
}

int fm_Comm_size(Comm comm, int* size) {
    Call call("MPI_Comm_size");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *size = object->size;
    return FM_SUCCESS;
}

int fm_Comm_remote_size(Comm comm, int* size) {
    Call call("MPI_Comm_remote_size");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (!object->inter) return call.finish(comm, FM_ERR_COMM);
    *size = object->remote_size;
    return FM_SUCCESS;
}

int fm_Comm_test_inter(Comm comm, int* flag) {
    Call call("MPI_Comm_test_inter");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *flag = object->inter;
    return FM_SUCCESS;
}

int fm_Comm_group(Comm comm, Group* group) {
    Call call("MPI_Comm_group");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *group = Group{make_group(Members(object->members))};
    return FM_SUCCESS;
}

int fm_Comm_remote_group(Comm comm, Group* group) {
    Call call("MPI_Comm_remote_group");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (!object->inter) return call.finish(comm, FM_ERR_COMM);
    *group = Group{make_group(Members(object->remote))};
    return FM_SUCCESS;
}

int fm_Comm_compare(Comm comm1, Comm comm2, int* result) {
    Call call("MPI_Comm_compare");
    CommObject *a = find(comm1), *b = find(comm2);
    if (a == nullptr || b == nullptr) return call.finish(FM_ERR_COMM);
    if (a == b) {
        *result = FM_IDENT;
        return FM_SUCCESS;
    }
    *result = FM_UNEQUAL;
    if (a->inter == b->inter) {
        auto local = ranks::compare(a->members, b->members);
        auto remote = ranks::compare(a->remote, b->remote);
        if (local == ranks::Relation::same && remote == ranks::Relation::same)
            *result = FM_CONGRUENT;
        else if (local != ranks::Relation::different && remote != ranks::Relation::different)
            *result = FM_SIMILAR;
    }
    return FM_SUCCESS;
}

int fm_Comm_get_name(Comm comm, char* comm_name, int* resultlen) {
    Call call("MPI_Comm_get_name");
    CommObject* object = find(comm);
    if (object == nullptr && comm != FM_COMM_NULL) return call.finish(FM_ERR_COMM);
    Text null_name("MPI_COMM_NULL");  // MPI-4.0 7.8
    const Text& name = object != nullptr ? object->name : null_name;
    __builtin_memcpy(comm_name, name.c_str(), name.size() + 1);
    *resultlen = static_cast<int>(name.size());
    return FM_SUCCESS;
}

int fm_Comm_set_name(Comm comm, const char* comm_name) {
    Call call("MPI_Comm_set_name");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    size_t length = __builtin_strlen(comm_name);
    object->name.assign(comm_name, length < FM_MAX_OBJECT_NAME ? length : FM_MAX_OBJECT_NAME - 1);
    return FM_SUCCESS;
}

int fm_Comm_get_info(Comm comm, Info* info_used) {
    Call call("MPI_Comm_get_info");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *info_used = Info{make_info(object->info)};
    return FM_SUCCESS;
}

int fm_Comm_set_info(Comm comm, Info info) {
    Call call("MPI_Comm_set_info");
    CommObject* object = find(comm);
    InfoObject* hints = find(info);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (hints == nullptr) return call.finish(comm, FM_ERR_INFO);
    for (const InfoPair& pair : hints->pairs) info_put(&object->info, pair.key.c_str(), pair.value.c_str());
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
