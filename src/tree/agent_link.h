// The agent's end of the tree: one Unix socket to the daemon of this node.
//
// Lives in the lower half: POSIX only (no asio, no threads), one thread at a time uses it. The first rank of
// a node starts the daemon. Use, in lower/main.cpp:
//
//     auto config = tree::AgentConfig::from_environment();  // empty job_id = not under `fermata run`
//     tree::AgentLink::ensure_daemon(config);               // may fork and exec the node daemon
//     tree::AgentLink link(config);                         // connects, before MPI_Init
//     link.send(link.starting());                           // the daemon knows who is in there, and waits
//     MPI_Init_thread(...);
//     link.send(link.hello(…));
//     … poll(link.fd(), POLLIN); while (auto m = link.receive()) { std::visit(...) } if (link.closed()) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/rank.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace fermata::tree {

// Words of `fermata run` for a rank, by environment (FERMATA_…). Take it before the program's environment is
// made and call forget_environment(): the application must see none of it.
struct AgentConfig {
    std::string job;  // FERMATA_JOB: the job's name
    std::string
        job_id;  // FERMATA_JOB_ID: 32 hex digits: the job's number (the same over restarts), then random ones
    std::string run_dir;   // FERMATA_RUN_BASE: the base of all run directories, same path on every node
    std::string root;      // FERMATA_ROOT: "addr:port,addr:port" of the root
    std::string key;       // FERMATA_KEY: the job's secret as hex, only for the node daemon
    std::string noded;     // FERMATA_NODED: path of the node daemon's program
    std::string ckpt_dir;  // FERMATA_CKPT_DIR: absolute
    std::string
        restore;  // FERMATA_RESTORE: absolute directory of the generation to restart; empty = first start
    Generation generation;  // FERMATA_GENERATION: its number; none at a first start
    bool choice = false;    // FERMATA_CHOICE: one of several, and the root says which once it knows the nodes
    std::string images;     // where the images of the generation are; empty: in `restore`
    std::string seal;       // FERMATA_SEAL: of its manifest, as the root has read it (store::open_chosen)
    std::string
        allow_owner;       // FERMATA_ALLOW_OWNER: number of one more user whose generation may run; or empty
    std::string protocol;  // FERMATA_PROTOCOL: "cc-d"
    std::string cpu;       // FERMATA_CPU: level of the CPUs that the program may use; empty: all of this one
    bool message_log =
        false;  // FERMATA_MESSAGE_LOG: the front logs messages, so that ranks can stop anywhere
    uint64_t log_bytes = uint64_t{256} << 20;  // FERMATA_MESSAGE_LOG_MEMORY: so much of it is in memory
    std::string node;       // FERMATA_NODE or the host's name: tests give several "nodes" to one machine
    std::string front_dir;  // FERMATA_FRONT_DIR: folder of the fronts
    bool mapped = false;    // FERMATA_MAPPED: the program goes on before its memory is read
    bool files = true;      // FERMATA_FILES: the program's files are kept and put back ("off": they are not)
    std::string moved;      // FERMATA_MOVED: folders that are elsewhere since the checkpoint: "/old=/new:…"
    std::string input;      // FERMATA_INPUT: the file that is standard input (input.h), for rank 0; or empty
    std::string image_key;  // FERMATA_IMAGE_KEY: file of the key that images are encrypted with; or empty
    std::string image_key_id;  // FERMATA_IMAGE_KEY_ID: of the key that `fermata run` has read, as hex
    uint32_t restarts = 0;     // FERMATA_RESTARTS: how many restarts lie behind this process
    // FERMATA_COPY_OF, "rank/ranks": this process becomes that rank's copy, by the image that FERMATA_RESTORE
    // has for it; none: it is a rank itself.
    std::optional<Rank> copy_of;
    uint32_t copys_ranks = 0;

    // Takes the key out of the environment: it is overwritten where it stands, so that /proc/PID/environ does
    // not show it.
    static AgentConfig from_environment();
    static void forget_environment();
    void forget_key();  // once the node daemon has it

    uint64_t job_number() const;   // as images have it
    std::string node_dir() const;  // <run_dir>/<job>.<end of job_id>.<node>: made by the node daemon, 0700
};

class AgentLink {
  public:
    // Starts the daemon of this node unless it runs already. Blocks until its socket exists. Throws
    // fermata::Error. Safe to call from all ranks at once.
    static void ensure_daemon(const AgentConfig& config, int timeout_ms = 120000);

    // Connects (ensure_daemon must have returned). Throws fermata::Error.
    explicit AgentLink(const AgentConfig& config, int timeout_ms = 120000);
    // Speaks through this socket.
    AgentLink(const AgentConfig& config, Fd socket);
    ~AgentLink();
    AgentLink(const AgentLink&) = delete;
    AgentLink& operator=(const AgentLink&) = delete;

    // Socket for poll(POLLIN); non-blocking, close-on-exec. May be moved to another number: dup it, then
    // adopt().
    int fd() const { return fd_; }
    void adopt(int fd) { fd_ = fd; }
    // Reads this connection to its end, then goes on with another one, of which the last bytes were the
    // first.
    void go_on_with(Fd socket);
    // Returns the bytes that have arrived and are no message yet.
    std::string rest() { return in_.rest(); }

    // The next complete message, or nothing for now. After the daemon closed, or sent garbage: closed() is
    // true.
    std::optional<wire::Message> receive();
    // Sends all of it, waiting while the socket is full (at most 30 s, then closed()). False when closed.
    bool send(const wire::Message& message);
    bool closed() const { return closed_; }

    wire::Starting starting() const;
    // The rank as the launcher says it before MPI does; -1: it does not say.
    static int launcher_rank();
    // Waits until the root has chosen the generation that is to be restarted. Throws fermata::Error when the
    // daemon is gone.
    wire::Chosen choice();

    // A Hello with job id, pid and host filled in.
    wire::Hello hello(int rank, int size, const char* mpi, const char* mpi_version) const;

  private:
    void fill();
    AgentConfig config_;
    int fd_ = -1;
    bool closed_ = false;
    wire::Decoder in_;
};

}  // namespace fermata::tree
