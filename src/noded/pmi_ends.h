// PmiEnds is the I/O of the server that the MPI libraries of this node's ranks find their world through
// (src/pmi): a socket pair per rank for PMI-1, one helper process for PMIx.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/rank.h"
#include "pmi/service.h"
#include "wire/message.h"

namespace fermata::pmi {
class Engine;
class PmixLink;
}  // namespace fermata::pmi

namespace fermata::noded {

class PmiEnds {
  public:
    using Environment = std::vector<std::pair<std::string, std::string>>;

    // `mpi`: "mpich" is served by PMI-1, "openmpi" by PMIx; `directory` is this daemon's own.
    PmiEnds(const pmi::World& world, const std::string& mpi, const std::string& directory);
    ~PmiEnds();

    std::function<void(const wire::Message&)> up;
    // A rank (none: every one) broke the protocol, and how. (Who cannot go on because another rank has died
    // is told so, and is not spoken of: that other one is.)
    std::function<void(std::optional<Rank> rank, const std::string& why)> on_fault;
    // Whether the rank's process is on its way out.
    std::function<bool(Rank)> is_ending;
    // MPI_Abort.
    std::function<void(const pmi::Abort&)> on_abort;

    bool is_helper(pid_t pid) const { return pid == helper_; }
    // Ranks can be started.
    bool ready() const;
    // The rank's end of its socket, which the variables name; none with PMIx.
    std::pair<Fd, Environment> prepare(Rank rank);

    // The same for a rank that is there already: it connects to the socket that the variable FERMATA_PMI
    // names in the daemon's directory, and says the line of the other one, FERMATA_PMI_LINE, first.
    Environment invite(Rank rank);

    // False: this message is not for MPI libraries.
    bool from_root(const wire::Message& message);
    // The rank will not speak any more: its process has ended, and whoever it has left behind has not its
    // socket.
    void ended(Rank rank, const std::string& how);
    bool has_socket(Rank rank) const { return ends_.count(rank) > 0 && ends_.at(rank).socket; }
    wire::RankEnd stage(Rank rank);

    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds);  // what add_to() has filled

  private:
    struct End {
        Fd socket;
        std::string waiting;  // to be written
    };
    // Connected, and has not said its line yet.
    struct Guest {
        Fd socket;
        std::string said;
        int64_t since = 0;  // ms
    };
    void start_helper();
    void let_in();
    bool introduced(Guest& guest);
    void pump();
    void handle(const pmi::Event& event);
    void write(End& end);
    // The one who speaks at this end; none: the helper.
    using Speaker = std::optional<Rank>;
    void read(Speaker speaker, End& end);

    std::unique_ptr<pmi::Service> service_;
    pmi::Engine* engine_ = nullptr;  // service_, when it is one
    pmi::PmixLink* link_ = nullptr;  // likewise
    const std::string directory_;
    const std::string socket_name_;  // of this world
    Fd listener_;                    // once a rank has been invited
    std::map<Rank, std::string> lines_;
    std::vector<Guest> guests_;
    std::map<Speaker, End> ends_;
    std::vector<Speaker> polled_;
    size_t first_ = 0, added_ = 0;  // in what is polled
    pid_t helper_ = -1;
    bool others_fault_ = false;  // what is being handled is what other ranks did
};

}  // namespace fermata::noded
