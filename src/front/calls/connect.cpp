// MPI_Comm_spawn, _accept, _connect, _join and ports: calls that lead to processes outside of the job.
#include "front/calls/comm_create.h"
#include "front/core/bridge.h"
#include "front/core/line.h"
#include "front/objects/api.h"
#include "front/objects/connected.h"
#include "front/requests/logged.h"

// The C front that the program is linked with says which library's programs it stands for.
extern "C" __attribute__((weak, visibility("default"))) const char fermata_abi_name[];

namespace fermata::front {
namespace {

class Connecting {
  public:
    explicit Connecting(Call& call) noexcept { connecting_begins(call.function()); }
    ~Connecting() { connecting_ends(); }
    Connecting(const Connecting&) = delete;
    Connecting& operator=(const Connecting&) = delete;
};

// One call that leads to other processes: make(real communicator, &real new one) asks the library.
template <typename Make>
int connect(Call& call, Comm comm, int root, Comm* newcomm, Make&& make) {
    if (logged::on()) logged::refuse(call.function());
    *newcomm = FM_COMM_NULL;
    CommObject* local = find(comm);
    if (local == nullptr) return call.finish(FM_ERR_COMM);
    if (local->inter) return call.finish(comm, FM_ERR_COMM);
    if (root < 0 || root >= local->size) return call.finish(comm, FM_ERR_ROOT);
    comms_tidy(call);
    CollectiveScope scope(call, *local);
    int rc;
    {
        Connecting connecting(call);
        RealComm real{};
        rc = make(RealComm{local->real}, &real);
        CommObject* made = nullptr;
        if (rc == FM_SUCCESS) rc = comm_adopt(real, true, nullptr, &made);
        uint64_t uid = 0;
        if (rc == FM_SUCCESS) rc = uid_of_connected(*made, &uid);
        if (rc == FM_SUCCESS) {
            made->origin = call.function();
            comm_publish(made, uid, local->errhandler);
            *newcomm = Comm{made->handle};
        }
    }
    scope.end();
    return call.finish(comm, rc);
}

// Real infos for the length of one call.
class RealInfos {
  public:
    RealInfos(int n, const Info* infos) noexcept {
        for (int i = 0; i < n; i++) list_.push_back(fm_new<TempInfo>(infos[i]));
        for (const TempInfo* info : list_) words_.push_back(*info);
    }
    ~RealInfos() {
        for (TempInfo* info : list_) fm_delete(info);
    }
    RealInfos(const RealInfos&) = delete;
    RealInfos& operator=(const RealInfos&) = delete;
    const RealInfo* data() const { return words_.empty() ? nullptr : words_.data(); }

  private:
    Vec<TempInfo*> list_;
    Vec<RealInfo> words_;
};

// A program that the library below could not start as it is: children run on that library without us.
bool other_abi(const char* function) {
    const char* library = bridge()->mpi_library;
    const char* own = &fermata_abi_name[0];
    if (own == nullptr || library == nullptr || __builtin_strcmp(own, library) == 0) return false;
    char text[256];
    Line line(text, sizeof text);
    line << function << ": the program is built for the ABI of " << own << " and the job runs on " << library
         << ", where its children would run without Fermata: run the job on the program's own library";
    bridge()->warn(text);
    return true;
}

// MPI_Comm_spawn and _multiple: start(real communicator, is it the root, &real new one) asks the library.
template <typename Start>
int spawn(Call& call, Comm comm, int root, Comm* intercomm, int* codes, Start&& start) {
    if (other_abi(call.function())) return call.finish(comm, FM_ERR_SPAWN);
    const CommObject* local = find(comm);
    bool here = local != nullptr && local->rank == root;
    int rc = connect(call, comm, root, intercomm,
                     [&](RealComm real, RealComm* made) { return start(real, here, made); });
    // Codes are the root's; elsewhere there are none to tell, and success is known by what came.
    const CommObject* made = find(*intercomm);
    if (!here && codes != nullptr && made != nullptr)
        for (int32_t i = 0; i < made->remote_size; i++) codes[i] = FM_SUCCESS;
    return rc;
}

}  // namespace

extern "C" {

int fm_Comm_spawn(const char* command, char** argv, int maxprocs, Info info, int root, Comm comm,
                  Comm* intercomm, int* array_of_errcodes) {
    Call call("MPI_Comm_spawn");
    return spawn(call, comm, root, intercomm, array_of_errcodes,
                 [=](RealComm real, bool here, RealComm* made) {
                     TempInfo hints(info);
                     return LOWER(Comm_spawn)(command, argv, maxprocs, hints, root, real, made,
                                              here ? array_of_errcodes : nullptr);
                 });
}

int fm_Comm_spawn_multiple(int count, char** array_of_commands, char*** array_of_argv,
                           const int* array_of_maxprocs, const Info* array_of_info, int root, Comm comm,
                           Comm* intercomm, int* array_of_errcodes) {
    Call call("MPI_Comm_spawn_multiple");
    return spawn(call, comm, root, intercomm, array_of_errcodes,
                 [=](RealComm real, bool here, RealComm* made) {
                     RealInfos hints(here && array_of_info != nullptr ? count : 0, array_of_info);
                     return LOWER(Comm_spawn_multiple)(count, array_of_commands, array_of_argv,
                                                       array_of_maxprocs, hints.data(), root, real, made,
                                                       here ? array_of_errcodes : nullptr);
                 });
}

int fm_Comm_accept(const char* port_name, Info info, int root, Comm comm, Comm* newcomm) {
    Call call("MPI_Comm_accept");
    return connect(call, comm, root, newcomm, [=](RealComm real, RealComm* made) {
        TempInfo hints(info);
        return LOWER(Comm_accept)(port_name, hints, root, real, made);
    });
}

int fm_Comm_connect(const char* port_name, Info info, int root, Comm comm, Comm* newcomm) {
    Call call("MPI_Comm_connect");
    return connect(call, comm, root, newcomm, [=](RealComm real, RealComm* made) {
        TempInfo hints(info);
        return LOWER(Comm_connect)(port_name, hints, root, real, made);
    });
}

int fm_Comm_join(int fd, Comm* intercomm) {
    Call call("MPI_Comm_join");
    return connect(call, FM_COMM_SELF, 0, intercomm,
                   [fd](RealComm, RealComm* made) { return LOWER(Comm_join)(fd, made); });
}

int fm_Open_port(Info info, char* port_name) {
    Call call("MPI_Open_port");
    TempInfo hints(info);
    int rc = LOWER(Open_port)(hints, port_name);
    if (rc == FM_SUCCESS) port_opened();
    return call.finish(rc);
}

int fm_Close_port(const char* port_name) {
    Call call("MPI_Close_port");
    int rc = LOWER(Close_port)(port_name);
    if (rc == FM_SUCCESS) port_closed();
    return call.finish(rc);
}

// Spawned processes are ordinary programs of the library below, so no rank has a parent.
int fm_Comm_get_parent(Comm* parent) {
    Call call("MPI_Comm_get_parent");
    *parent = FM_COMM_NULL;
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
