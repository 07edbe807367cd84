#include "keeping/levels/file_copies.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace fermata::keeping {

using store::LevelName;

FileCopies::FileCopies(const Settings& settings, AutoLevels& planned, store::Store& store, level::Book& book,
                       Send send)
    : settings_(settings), planned_(planned), store_(store), book_(book), send_(std::move(send)) {}

bool FileCopies::take_due(Generation newest, int64_t now) {
    if (since_ == 0) since_ = now;
    if (!settings_.levels || !settings_.levels.files) return false;
    if (!again_ && static_cast<double>(now - since_) < *settings_.levels.files * 1000) return false;
    if (!newest || book_.has(newest, LevelName::files)) return false;
    since_ = now;  // the next one is due then, whatever becomes of this
    again_ = false;
    return true;
}

void FileCopies::start(Generation generation, std::vector<wire::Share> shares, double of_node) {
    begin(generation, std::move(shares), settings_.levels.rate(of_node, *settings_.levels.files));
}

void FileCopies::start_now(Generation generation, std::vector<wire::Share> shares) {
    begin(generation, std::move(shares), 0);
}

void FileCopies::begin(Generation generation, std::vector<wire::Share> shares, uint64_t limit) {
    std::vector<Generation> list = book_.to_copy(generation);
    if (list.empty()) return;
    for (Generation one : list) store_.forget_copied(one.number());
    copying_ =
        Copying{{++copies_, list, settings_.ckpt_dir, limit, std::move(shares), book_.medium_of(generation)},
                {},
                0,
                "",
                monotonic_s(),
                false};
    for (const wire::Share& share : copying_->order.shares) copying_->waiting.insert(share.host);
    send_(copying_->order);
}

void FileCopies::hurry() {
    if (!copying_ || copying_->order.bytes_per_second == 0) return;
    copying_->order.bytes_per_second = 0;
    send_(copying_->order);
}

bool FileCopies::heard(const wire::Message& message) {
    auto* done = std::get_if<wire::Flushed>(&message);
    if (!done) return false;
    if (!copying_ || done->number != copying_->order.number) return true;
    if (copying_->waiting.erase(done->host) == 0) return true;  // said again
    copying_->bytes += done->bytes;
    copying_->doubtful = copying_->doubtful || !done->error.empty();
    if (copying_->error.empty() && !done->error.empty())
        copying_->error = fmt::format("{}: {}", done->host, done->error);
    return true;
}

void FileCopies::say_again() {
    if (copying_) send_(copying_->order);
}

bool FileCopies::ended(const std::set<std::string>& here) {
    if (!copying_) return false;
    // Who is gone answers no more. The others are waited for although it has failed: the next copy may come
    // at once, and what they still write would be in its way.
    std::erase_if(copying_->waiting, [&](const std::string& host) {
        if (here.count(host)) return false;
        if (copying_->error.empty()) copying_->error = fmt::format("the node daemon of {} is gone", host);
        return true;
    });
    if (!copying_->waiting.empty()) return false;
    const Copying done = std::move(*copying_);
    copying_.reset();
    failed_ = false;
    doubtful_ = done.doubtful ? done.newest() : Generation();
    try {
        if (!done.error.empty()) fail("{}", done.error);
        commit(done);
    } catch (const std::exception& error) {
        failed_ = true;
        for (Generation one : done.order.generations)
            if (!book_.has(one, LevelName::files)) store_.forget_copied(one.number());
        say(fmt::format("{} could not be copied from its nodes to {}: {}", done.newest().name(),
                        settings_.ckpt_dir, error.what()));
    }
    return true;
}

void FileCopies::commit(const Copying& done) {
    for (Generation one : done.order.generations) {
        store_.commit_copied(one.number());
        book_.flushed(one);
    }
    const double seconds = monotonic_s() - done.began;
    planned_.files(done.bytes, seconds);
    spdlog::info("{} is in files: {} in {:.2f} s", done.newest().name(), human_size(done.bytes), seconds);
    if (settings_.verbose)
        say(fmt::format("{} is in {} now: {} in {:.2f} s", done.newest().name(), settings_.ckpt_dir,
                        human_size(done.bytes), seconds));
    if (settings_.keep > 0) store_.retain(settings_.keep);
}

}  // namespace fermata::keeping
