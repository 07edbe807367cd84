// VeloC's C++ interface: regions and objects in one checkpoint, groups of their own, an observer; as ranks of
// a job, then as processes that are alone: `veloc_cpp CONFIG`.
#include <map>
#include <veloc.hpp>

namespace {

void write(std::ostream& out, const std::map<int, double>& map) {
    for (auto [key, value] : map) out << key << ' ' << value << ' ';
}
bool read(std::istream& in, std::map<int, double>& map) {
    map.clear();
    for (int key; in >> key;)
        if (!(in >> map[key])) return false;
    return in.eof();
}

// In one write: ranks share the launcher's pipe.
void say(std::string line) { std::cout << (line += '\n') << std::flush; }

bool run(veloc::client_t* client, int rank) {
    int number = 7 + rank, other = 8;
    std::map<int, double> map{{1, 0.5}, {rank + 2, 4}};
    const auto whole = map;
    client->register_observer(VELOC_OBSERVE_CKPT_END, [](const std::string& name, int version) {
        say("observed " + name + " " + std::to_string(version));
    });
    auto save = [&](std::ostream& out) { write(out, map); };
    auto load = [&](std::istream& in) { return read(in, map); };
    bool good = client->mem_protect(0, &number, 1, sizeof number, "first");
    good = client->mem_protect(1, save, load, "first") && good;
    good = client->mem_protect(5, &other, 1, sizeof other) && good;  // of all other names
    good = client->checkpoint("first", 0) && client->checkpoint("second", 3) && good;
    number = other = 0;
    map.clear();
    good = client->checkpoint_wait() && client->checkpoint_finished() && good;
    good = client->restart("first", 0) && good;
    good = number == 7 + rank && other == 0 && map == whole && good;
    good = client->restart_test("second", 0) == 3 && client->restart_begin("second", 3) && good;
    good = client->recover_size(5) == sizeof other && client->recover_size(1) == 0 && good;
    good = client->recover_mem(VELOC_RECOVER_ALL, {}) && client->restart_end(true) && good;
    good = other == 8 && client->restart_test("second", 3) == VELOC_FAILURE && good;
    return !client->restart("first", 0, 1) && good;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (veloc::client_t* client : {veloc::get_client(MPI_COMM_WORLD, argv[1]),
                                    veloc::get_client(static_cast<unsigned>(rank), argv[1])}) {
        if (!client) return 1;
        say(run(client, rank) ? "right" : "wrong");
        delete client;
    }
    return MPI_Finalize();
}
