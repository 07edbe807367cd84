#include "noded/branch.h"

#include <unistd.h>

#include <algorithm>

#include "base/invariant.h"
#include "base/log.h"

namespace fermata::noded {
namespace {

constexpr int kPartsMs = 20;  // answers that may come in parts: so often at most

}  // namespace

Branch::Branch(tree::Channel root, const wire::Key& key, const std::string& root_addresses, std::string host)
    : host_(std::move(host)), links_(key), uplink_(std::move(root), key, root_addresses) {
    uplink_.on_message = [this](const wire::Message& message) { from_above(message); };
    uplink_.on_lost = [this] { relay_.lost_above(); };
    uplink_.on_connected = [this] { introduce(); };
    links_.on_message = [this](int link, const wire::Message& message) { from_below(link, message); };
    links_.on_closed = [this](int link, tree::Links::End how) { closed(link, how); };
    introduce();
}

// Until the root has given it a number, a daemon can only register.
void Branch::introduce() {
    if (relay_.node() < 0) {
        uplink_.send(wire::NodeHello{host_, ::getpid(), tree::addresses_of_this_host(links_.port())});
    } else {
        relay_.above();
        send_out();
    }
}

void Branch::from_above(const wire::Message& message) {
    if (auto* parent = std::get_if<wire::Parent>(&message)) {
        if (relay_.node() >= 0) return;
        links_.set_rhythm({parent->beat_ms, parent->silent_ms});
        relay_.placed(*parent);
        uplink_.follow(*parent);
    } else if (auto* call = std::get_if<wire::Roll>(&message)) {
        relay_.roll(*call);
    } else if (auto* order = std::get_if<wire::Order>(&message)) {
        auto inner = relay_.order(*order);
        send_out(inner && tree::is_followed(*inner));  // before what the order lets this daemon say
        if (inner) on_message(*inner);
    } else if (auto* letter = std::get_if<wire::To>(&message)) {
        if (auto inner = relay_.to(*letter)) on_message(*inner);
    } else {
        on_message(message);
    }
    send_out();
}

void Branch::from_below(int link, const wire::Message& message) {
    auto known = child_of_.find(link);
    if (known != child_of_.end()) {
        if (!relay_.from_child(known->second, message)) on_child(known->second, message);
    } else if (auto* attach = std::get_if<wire::Attach>(&message)) {
        const int child = attach->node;
        if (auto old = link_of_.find(child); old != link_of_.end()) {
            int before = old->second;
            closed(before, tree::Links::End::closed);
            links_.close(before);
        }
        always(child_of_.count(link) == 0 && link_of_.count(child) == 0, "a daemon with two connections");
        child_of_[link] = child;
        link_of_[child] = link;
        links_.allow(link, wire::kMaxPayload);
        relay_.child(*attach);
    }
    send_out();
}

void Branch::closed(int link, tree::Links::End how) {
    auto found = child_of_.find(link);
    if (found == child_of_.end()) return;
    int child = found->second;
    spdlog::info("daemon {} below has left", child);
    child_of_.erase(found);
    link_of_.erase(child);
    relay_.child_gone(child, how == tree::Links::End::silent);
    on_child_gone(child);
    send_out();
}

// `followed`: as tree::is_followed() has it.
void Branch::send_out(bool followed) {
    for (const tree::Relay::Out& out : relay_.take_out()) {
        if (out.to == tree::Relay::kUp)
            uplink_.send(out.message);
        else if (auto link = link_of_.find(out.to); link != link_of_.end())
            followed ? links_.put(link->second, out.message) : links_.send(link->second, out.message);
    }
}

void Branch::say(wire::Message message) {
    relay_.own(std::move(message));
    send_out();
}

void Branch::to_children(const wire::Message& message) {
    for (auto& [child, link] : link_of_) links_.send(link, message);
}

void Branch::hand_up(uint32_t ranks) {
    int64_t now = tree::now_ms();
    bool time = now - parts_told_ >= kPartsMs;
    if (time && tally().parts_wait()) parts_told_ = now;
    relay_.hand_up(ranks, time);
    send_out();
}

void Branch::add_to(std::vector<pollfd>& fds) {
    always(on_message && on_child && on_child_gone, "a daemon that nobody listens to");
    uplink_at_ = fds.size();
    uplink_.add_to(fds);
    links_at_ = fds.size();
    links_.add_to(fds);
}

void Branch::serve(const std::vector<pollfd>& fds) {
    always(uplink_at_ <= links_at_ && links_at_ <= fds.size(), "connections that were not polled");
    uplink_.serve(fds, uplink_at_);
    links_.serve(fds, links_at_);
}

int Branch::rest(int otherwise) const {
    if (uplink_.lost_since() == 0 && relay_.tally().parts_wait()) otherwise = std::min(otherwise, kPartsMs);
    return uplink_.rest(links_.rest(otherwise));
}

void Branch::flush(int ms) {
    uplink_.flush(ms);
    links_.flush(ms);
}

}  // namespace fermata::noded
