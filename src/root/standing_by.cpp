// A life that stands by: its ranks have started MPI, and wait to be told what they go on from. It has no
// control socket and no lock until it is the job.
#include <poll.h>

#include <vector>

#include "root/root.h"

namespace fermata::root {

void Root::stand_by(launch::Launcher& launcher) {
    stands_by_.yes = true;
    launcher.stand_by();
    begin(launcher);
}

void Root::add_to(std::vector<pollfd>& fds) {
    tree_.add_to(fds);
    stands_by_.polled = fds.size();
    launcher_->add_to(fds);
}

void Root::serve(const std::vector<pollfd>& fds, size_t first) {
    tree_.serve(fds, first);
    launcher_->serve(fds, stands_by_.polled);
    if (auto code = launcher_->ended()) launcher_end_ = code;
}

void Root::take_up(Settings settings) {
    stands_by_.yes = false;
    settings.job_id = settings_.job_id;  // as its ranks know it
    settings_ = std::move(settings);
    started_ = tree::now_ms();
    schedule_ = Schedule(settings_, started_);
    start_.restored_from(settings_.restored);
    keeper_.restart().begin();
}

// Signals are the job's: serve(int) would take them.
void Root::dismiss() {
    launcher_->kill();
    clear_up([this] {
        std::vector<pollfd> fds;
        add_to(fds);
        if (::poll(fds.data(), fds.size(), rest(20)) >= 0) serve(fds, 0);
    });
    launcher_ = nullptr;
}

}  // namespace fermata::root
