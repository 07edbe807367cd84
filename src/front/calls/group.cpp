// MPI_Group_*: plain code over ordered world ranks, nothing crosses to the lower half.
#include "front/objects/api.h"

namespace fermata::front {
namespace {

Group handle(Members&& members) { return Group{make_group(static_cast<Members&&>(members))}; }

template <typename Combine>
int combine(Call& call, Group group1, Group group2, Combine how, Group* newgroup) {
    GroupObject *a = find(group1), *b = find(group2);
    if (a == nullptr || b == nullptr) return call.finish(FM_ERR_GROUP);
    *newgroup = handle(how(a->members, b->members));
    return FM_SUCCESS;
}

template <typename Choose>
int choose(Call& call, Group group, int n, const int* positions, Choose how, Group* newgroup) {
    GroupObject* object = find(group);
    if (object == nullptr) return call.finish(FM_ERR_GROUP);
    if (n < 0) return call.finish(FM_ERR_ARG);
    Members members;
    if (!how(object->members, n, positions, &members)) return call.finish(FM_ERR_RANK);
    *newgroup = handle(static_cast<Members&&>(members));
    return FM_SUCCESS;
}

template <typename Choose>
int choose_ranges(Call& call, Group group, int n, const int* ranges, Choose how, Group* newgroup) {
    if (find(group) == nullptr) return call.finish(FM_ERR_GROUP);
    Vec<int> positions;
    if (!ranks::expand(n, reinterpret_cast<const int(*)[3]>(ranges), &positions))
        return call.finish(FM_ERR_ARG);
    return choose(call, group, static_cast<int>(positions.size()), positions.data(), how, newgroup);
}

}  // namespace

extern "C" {

int fm_Group_size(Group group, int* size) {
    Call call("MPI_Group_size");
    GroupObject* object = find(group);
    if (object == nullptr) return call.finish(FM_ERR_GROUP);
    *size = static_cast<int>(object->members.size());
    return FM_SUCCESS;
}

int fm_Group_rank(Group group, int* rank) {
    Call call("MPI_Group_rank");
    GroupObject* object = find(group);
    if (object == nullptr) return call.finish(FM_ERR_GROUP);
    int position = ranks::find(object->members, own_rank());
    *rank = position < 0 ? FM_UNDEFINED : position;
    return FM_SUCCESS;
}

int fm_Group_translate_ranks(Group group1, int n, const int* ranks1, Group group2, int* ranks2) {
    Call call("MPI_Group_translate_ranks");
    GroupObject *from = find(group1), *to = find(group2);
    if (from == nullptr || to == nullptr) return call.finish(FM_ERR_GROUP);
    if (n < 0) return call.finish(FM_ERR_ARG);
    // One lookup needs no index; many do.
    Members none;
    ranks::Position in_to(n > 2 ? to->members : none);
    for (int i = 0; i < n; i++) {
        int rank = ranks1[i];
        if (rank == FM_PROC_NULL) {
            ranks2[i] = FM_PROC_NULL;
            continue;
        }
        if (rank < 0 || static_cast<size_t>(rank) >= from->members.size()) return call.finish(FM_ERR_RANK);
        Member member = from->members[static_cast<size_t>(rank)];
        int position = n > 2 ? in_to.of(member) : ranks::find(to->members, member);
        ranks2[i] = position < 0 ? FM_UNDEFINED : position;
    }
    return FM_SUCCESS;
}

int fm_Group_compare(Group group1, Group group2, int* result) {
    Call call("MPI_Group_compare");
    GroupObject *a = find(group1), *b = find(group2);
    if (a == nullptr || b == nullptr) return call.finish(FM_ERR_GROUP);
    switch (ranks::compare(a->members, b->members)) {
        case ranks::Relation::same:
            *result = FM_IDENT;
            break;
        case ranks::Relation::similar:
            *result = FM_SIMILAR;
            break;
        case ranks::Relation::different:
            *result = FM_UNEQUAL;
            break;
    }
    return FM_SUCCESS;
}

int fm_Group_union(Group group1, Group group2, Group* newgroup) {
    Call call("MPI_Group_union");
    return combine(call, group1, group2, ranks::united, newgroup);
}

int fm_Group_intersection(Group group1, Group group2, Group* newgroup) {
    Call call("MPI_Group_intersection");
    return combine(call, group1, group2, ranks::intersection, newgroup);
}

int fm_Group_difference(Group group1, Group group2, Group* newgroup) {
    Call call("MPI_Group_difference");
    return combine(call, group1, group2, ranks::difference, newgroup);
}

int fm_Group_incl(Group group, int n, const int* ranks, Group* newgroup) {
    Call call("MPI_Group_incl");
    return choose(call, group, n, ranks, ranks::include, newgroup);
}

int fm_Group_excl(Group group, int n, const int* ranks, Group* newgroup) {
    Call call("MPI_Group_excl");
    return choose(call, group, n, ranks, ranks::exclude, newgroup);
}

int fm_Group_range_incl(Group group, int n, const int* ranges, Group* newgroup) {
    Call call("MPI_Group_range_incl");
    return choose_ranges(call, group, n, ranges, ranks::include, newgroup);
}

int fm_Group_range_excl(Group group, int n, const int* ranges, Group* newgroup) {
    Call call("MPI_Group_range_excl");
    return choose_ranges(call, group, n, ranges, ranks::exclude, newgroup);
}

int fm_Group_free(Group* group) {
    Call call("MPI_Group_free");
    GroupObject* object = find(*group);
    if (object == nullptr) return call.finish(FM_ERR_GROUP);
    // Freeing the empty group is allowed: group operations may return it (MPI-2.2 errata).
    if (!object->predefined) {
        take_handle(object);
        fm_delete(object);
    }
    *group = FM_GROUP_NULL;
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
