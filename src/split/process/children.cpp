#include "split/process/children.h"

#include <unistd.h>

#include <cstdlib>

#include "split/process/parts.h"
#include "split/threads/records.h"

namespace fermata::split::process {

std::vector<Child> children() {
    std::vector<Child> all;
    for (int tid : threads::present_threads()) {
        if (tid == ::gettid()) continue;  // the agent's are Fermata's
        std::string numbers = read_proc("/proc/self/task/" + std::to_string(tid) + "/children");
        for (size_t at = 0; at < numbers.size();) {
            int pid = std::atoi(numbers.c_str() + at);
            std::string name = read_proc("/proc/" + std::to_string(pid) + "/comm");
            if (!name.empty() && name.back() == '\n') name.pop_back();
            std::string state = field(read_proc("/proc/" + std::to_string(pid) + "/status"), "State");
            if (pid > 0 && !state.empty()) all.push_back({pid, state[0] == 'Z', name});
            at = numbers.find(' ', at);
            if (at == std::string::npos) break;
            ++at;
        }
    }
    return all;
}

}  // namespace fermata::split::process
