// Server is libpmix as a server of the ranks of one node: what libpmix asks of its host goes out as messages
// to the daemon, and the daemon's answers go in. libpmix calls from a thread of its own.
#pragma once

#include <pmix.h>
#include <pmix_server.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "pmi/helper_message.h"

namespace fermata::pmi::helper {

class Server {
  public:
    // `send` is called by several threads.
    explicit Server(std::function<void(const Message&)> send) : send_(std::move(send)) {}

    // Throws Error that says what libpmix cannot. `directory`: the helper's own.
    Ready start(const Start& start, const std::string& directory);
    void fenced(const Fenced& fenced);
    void given(const Given& given);
    void wanted(const Wanted& wanted);
    void ended(const Ended& ended);
    void stop();

  private:
    // A call of libpmix that waits for the daemon.
    struct Waiting {
        pmix_modex_cbfunc_t answer = nullptr;
        void* data = nullptr;
    };
    // A question of another node that waits for a rank here.
    struct Question {
        Server* server = nullptr;
        uint32_t from = 0, number = 0;
        Rank rank;
        bool answered = false;
    };

    void register_world(const Start& start, const std::string& directory);
    void register_rank(Rank rank);
    uint32_t wait(pmix_modex_cbfunc_t answer, void* data);
    void resolve(uint32_t number, const std::string& data, bool failed);
    bool ranks_of(const pmix_proc_t* procs, size_t count, std::vector<RankRange>* among) const;
    void answer(Question* question, pmix_status_t status, const char* data, size_t size);

    // Functions that libpmix calls.
    static pmix_server_module_t module();
    static pmix_status_t reached(const pmix_proc_t* proc, Stage stage);
    static pmix_status_t on_connected(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t, void*);
    static pmix_status_t on_finalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t, void*);
    static pmix_status_t on_abort(const pmix_proc_t* proc, void*, int status, const char text[], pmix_proc_t*,
                                  size_t, pmix_op_cbfunc_t, void*);
    static pmix_status_t on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t[], size_t,
                                  char* data, size_t size, pmix_modex_cbfunc_t answer, void* cookie);
    static pmix_status_t on_direct_modex(const pmix_proc_t* proc, const pmix_info_t[], size_t,
                                         pmix_modex_cbfunc_t answer, void* cookie);

    std::function<void(const Message&)> send_;
    std::string name_;  // of the namespace
    uint32_t size_ = 0;
    std::mutex lock_;
    std::map<uint32_t, Waiting> waiting_;
    uint32_t next_ = 0;
    std::map<Rank, std::string> ended_;  // how
    std::set<Question*> questions_;
};

}  // namespace fermata::pmi::helper
