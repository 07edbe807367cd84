// The sessions model (MPI-4.0 11.3) on top of the one world that there is: its process sets, their groups,
// error handlers. MPI_Session_init and MPI_Session_finalize are beside MPI_Init.
#include "front/objects/session.h"

#include "front/objects/api.h"

namespace fermata::front {
namespace {

constexpr const char* kSets[] = {"mpi://WORLD", "mpi://SELF"};
constexpr int kSetCount = 2;
// Names are URIs: capitals do not matter.
bool same_name(const char* a, const char* b) {
    auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    while (*a != 0 && small(*a) == small(*b)) a++, b++;
    return small(*a) == small(*b);
}

// Members of a process set; false: there is no such set.
bool members_of(const char* name, Members* members) {
    if (same_name(name, kSets[0])) {
        for (int rank = 0; rank < front.world_size; rank++)
            members->push_back(Rank(static_cast<uint32_t>(rank)));
        return true;
    }
    if (!same_name(name, kSets[1])) return false;
    members->push_back(own_rank());
    return true;
}

Text decimal(size_t value) {
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = static_cast<char>('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return Text(digits + at, sizeof digits - at);
}

}  // namespace

extern "C" {

int fm_Session_get_num_psets(Session session, Info, int* npset_names) {
    Call call("MPI_Session_get_num_psets");
    if (find(session) == nullptr) return call.finish(session, FM_ERR_SESSION);
    *npset_names = kSetCount;
    return FM_SUCCESS;
}

int fm_Session_get_nth_pset(Session session, Info, int n, int* pset_len, char* pset_name) {
    Call call("MPI_Session_get_nth_pset");
    if (find(session) == nullptr) return call.finish(session, FM_ERR_SESSION);
    if (n < 0 || n >= kSetCount || *pset_len < 0) return call.finish(session, FM_ERR_ARG);
    int length = static_cast<int>(__builtin_strlen(kSets[n])) + 1;
    int room = *pset_len < length ? *pset_len : length;
    for (int i = 0; i < room; i++) pset_name[i] = i + 1 < room ? kSets[n][i] : '\0';
    *pset_len = length;
    return FM_SUCCESS;
}

int fm_Session_get_pset_info(Session session, const char* pset_name, Info* info) {
    Call call("MPI_Session_get_pset_info");
    if (find(session) == nullptr) return call.finish(session, FM_ERR_SESSION);
    Members members;
    if (!members_of(pset_name, &members)) return call.finish(session, FM_ERR_ARG);
    InfoPairs pairs;
    info_put(&pairs, "mpi_size", decimal(members.size()).c_str());
    *info = Info{make_info(pairs)};
    return FM_SUCCESS;
}

int fm_Session_get_info(Session session, Info* info) {
    Call call("MPI_Session_get_info");
    SessionObject* object = find(session);
    if (object == nullptr) return call.finish(session, FM_ERR_SESSION);
    InfoPairs pairs;
    info_put(&pairs, "thread_level", name_of_level(object->thread_level));
    *info = Info{make_info(pairs)};
    return FM_SUCCESS;
}

int fm_Group_from_session_pset(Session session, const char* pset_name, Group* newgroup) {
    Call call("MPI_Group_from_session_pset");
    *newgroup = FM_GROUP_NULL;
    if (find(session) == nullptr) return call.finish(session, FM_ERR_SESSION);
    Members members;
    if (!members_of(pset_name, &members)) return call.finish(session, FM_ERR_ARG);
    *newgroup = Group{make_group(static_cast<Members&&>(members))};
    return FM_SUCCESS;
}

// A communicator of each side, then one between them with the world as bridge.
int fm_Intercomm_create_from_groups(Group local_group, int local_leader, Group remote_group,
                                    int remote_leader, const char* stringtag, Info info,
                                    Errhandler errhandler, Comm* newintercomm) {
    *newintercomm = FM_COMM_NULL;
    int leader = -1;
    {
        Call call("MPI_Intercomm_create_from_groups");
        GroupObject* local = find(local_group);
        GroupObject* remote = find(remote_group);
        if (local == nullptr || remote == nullptr) return call.finish(FM_ERR_GROUP);
        if (local_leader < 0 || static_cast<size_t>(local_leader) >= local->members.size())
            return call.finish(FM_ERR_ARG);
        if (Member(own_rank()) == local->members[static_cast<size_t>(local_leader)]) {
            if (remote_leader < 0 || static_cast<size_t>(remote_leader) >= remote->members.size())
                return call.finish(FM_ERR_ARG);
            leader = remote->members[static_cast<size_t>(remote_leader)].number();
        }
    }
    Comm side = FM_COMM_NULL;
    if (int rc = fm_Comm_create_from_group(local_group, stringtag, info, errhandler, &side)) return rc;
    uint64_t tag = 0;
    for (const char* at = stringtag; *at != 0; at++) tag = tag * 31 + static_cast<unsigned char>(*at);
    int rc = fm_Intercomm_create(side, local_leader, FM_COMM_WORLD, leader, static_cast<int>(tag & 0x7fff),
                                 newintercomm);
    int freed = fm_Comm_free(&side);
    return rc != FM_SUCCESS ? rc : freed;
}

}  // extern "C"
}  // namespace fermata::front
