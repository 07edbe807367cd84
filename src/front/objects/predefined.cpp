// Predefined objects: made once, their real handles read again at every restart.
#include "fermata_predefined.h"
#include "front/core/bridge.h"
#include "front/objects/api.h"
#include "front/objects/clock.h"
#include "front/objects/internal.h"
#include "front/objects/objects.h"

namespace fermata::front {
namespace {

// Pair types are two basic elements (MPI-4.0 6.9.4); the first one's size is that of its own type.
struct PairType {
    Datatype pair, first;
};
constexpr PairType kPairs[] = {
    {FM_FLOAT_INT, FM_FLOAT},  {FM_DOUBLE_INT, FM_DOUBLE},
    {FM_LONG_INT, FM_LONG},    {FM_2INT, FM_INT},
    {FM_SHORT_INT, FM_SHORT},  {FM_LONG_DOUBLE_INT, FM_LONG_DOUBLE},
    {FM_2REAL, FM_REAL},       {FM_2DOUBLE_PRECISION, FM_DOUBLE_PRECISION},
    {FM_2INTEGER, FM_INTEGER},
};

template <typename H>
uint64_t real_of(H handle) {
    return LOWER(RealOfPredefined)(static_cast<uint32_t>(kKindOf<H>), word_of(handle));
}

void boot_types() {
    for (const PredefinedHandle& predefined : kPredefinedTypes) {
        auto* type = fm_new<TypeObject>();
        type->combiner = FM_COMBINER_NAMED;
        type->committed = true;
        type->name = predefined.name;
        type->elements = 1;
        give_predefined(type, predefined.value);
    }
}

void boot_ops() {
    for (const PredefinedHandle& predefined : kPredefinedOps)
        give_predefined(fm_new<OpObject>(), predefined.value);
}

void boot_errhandlers() {
    using Does = ErrhandlerObject::Does;
    errors_are_fatal.does = Does::aborts_all;
    errors_abort.does = Does::aborts;
    errors_return.does = Does::returns;
    give_predefined(&errors_are_fatal, word_of(FM_ERRORS_ARE_FATAL));
    give_predefined(&errors_abort, word_of(FM_ERRORS_ABORT));
    give_predefined(&errors_return, word_of(FM_ERRORS_RETURN));
}

void read_layout(TypeObject* type) {
    RealDatatype real{type->real};
    LOWER(Type_size)(real, &type->size);
    LOWER(Type_get_extent)(real, &type->lb, &type->extent);
    LOWER(Type_get_true_extent)(real, &type->true_lb, &type->true_extent);
    if (type->size == 0) type->elements = 0;  // MPI_LB and MPI_UB: marks, no data
}

void start_world() {
    comm_world.uid = kWorldUid;
    for (int32_t rank = 0; rank < front.world_size; rank++)
        comm_world.members.push_back(Rank(static_cast<uint32_t>(rank)));
    comm_world.rank = front.world_rank;
    comm_world.size = front.world_size;
    comm_world.name = "MPI_COMM_WORLD";
    comm_world.errhandler = &errors_are_fatal;
    comm_self.uid = self_uid(own_rank());
    comm_self.members.push_back(own_rank());
    comm_count_peers(&comm_world);
    comm_count_peers(&comm_self);
    comm_self.size = 1;
    comm_self.name = "MPI_COMM_SELF";
    comm_self.errhandler = &errors_are_fatal;
    give_predefined(&comm_world, word_of(FM_COMM_WORLD));
    give_predefined(&comm_self, word_of(FM_COMM_SELF));
    clock_register(comm_world);
    clock_register(comm_self);
}

// Makes the info of the environment: known before MPI_Init, and the same ever after (MPI_Info_create_env may
// be called at any time).
void boot_info_env() {
    auto* env = fm_new<InfoObject>();
    give_predefined(env, word_of(FM_INFO_ENV));
    if (bridge() == nullptr) return;
    if (bridge()->program != nullptr) info_put(&env->pairs, "command", bridge()->program);
    char digits[12];
    int at = sizeof digits - 1;
    digits[at] = 0;
    for (int32_t n = bridge()->world_size; n != 0; n /= 10) digits[--at] = static_cast<char>('0' + n % 10);
    info_put(&env->pairs, "maxprocs", digits + at);
}

}  // namespace

void predefined_refresh(bool first_time) noexcept {
    types_forget_all_real();
    for (const PredefinedHandle& predefined : kPredefinedTypes) {
        auto* type = find_type(predefined.value);
        type->real = real_of(Datatype{predefined.value});
        if (type->real == 0) continue;  // optional, and this library lacks it
        type_note_real(type);
        if (first_time) read_layout(type);
    }
    for (const PredefinedHandle& predefined : kPredefinedOps) {
        auto* op = find_op(predefined.value);
        op->real = real_of(Op{predefined.value});
        int commutes = 0;
        if (first_time && op->real != 0 && LOWER(Op_commutative)(RealOp{op->real}, &commutes) == FM_SUCCESS)
            op->commutes = commutes != 0;
    }
    if (first_time)
        for (const PairType& pair : kPairs) {
            find(pair.pair)->elements = 2;
            find(pair.pair)->first = find(pair.first)->size;
        }
    comm_world.real = real_of(FM_COMM_WORLD);
    comm_self.real = real_of(FM_COMM_SELF);
}

void objects_boot() noexcept {
    if (errors_are_fatal.predefined) return;
    boot_types();
    boot_ops();
    boot_errhandlers();
    give_predefined(fm_new<GroupObject>(), word_of(FM_GROUP_EMPTY));
    boot_info_env();
}

void objects_start() noexcept {
    static constinit SpinLock lock{};
    SpinGuard guard(lock);
    if (comm_world.size != 0) return;
    objects_boot();
    start_world();
    predefined_refresh(true);
    world_attributes_start();
}

}  // namespace fermata::front
