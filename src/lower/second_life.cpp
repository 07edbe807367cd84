#include "lower/second_life.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "lower/agent.h"
#include "lower/mpi_start.h"
#include "lower/new_lower_half.h"
#include "lower/say_each.h"
#include "lower/services.h"
#include "lower/start.h"
#include "split/alloc/lower_alloc.h"
#include "split/fds/descriptors.h"
#include "split/loader/loader.h"
#include "split/memory/memory.h"
#include "split/process/child.h"
#include "split/thread_pointer/redirect.h"
#include "split/threads/donors.h"
#include "split/threads/records.h"
#include "split/threads/restart.h"
#include "split/threads/signals.h"
#include "split/threads/stop.h"
#include "split/vdso/vdso.h"

namespace fermata::lower {
namespace {

using Json = nlohmann::json;
namespace threads = split::threads;

Json bytes_of(const std::string& text) { return Json::binary({text.begin(), text.end()}); }
std::string text_of(const Json& bytes) {
    const auto& all = bytes.get_binary();
    return {all.begin(), all.end()};
}

MpiFacts start_beside_the_program(const SecondLife& life, const tree::AgentConfig& config) {
    split::begin_descriptors();
    split::process::resume_notes(life.process_notes);
    note_shared_names(config);
    threads::settle_credentials();
    threads::block_signals_for_init();
    kill_point("child.before_init");
    MpiFacts facts = bring_up_mpi(life.many_threads ? ThreadNeed::many : ThreadNeed::one);
    kill_point("child.after_init");
    split::partition(true);
    threads::make_bell(split::lower_descriptor_base());
    const split::MemoryTable memory = split::decode({life.memory.data(), life.memory.size()});
    if (memory.vdso != 0) split::refill_vdso(memory.vdso);
    split::let_fork_copy(memory, false);
    split::lock_again(memory);
    return facts;
}

}  // namespace

std::string SecondLife::to_text() const {
    const Json all = {{"epoch", epoch},
                      {"upper", anchors.upper},
                      {"threads", anchors.threads},
                      {"bridge_version", anchors.bridge_version},
                      {"interface", anchors.interface},
                      {"program", bytes_of(program)},
                      {"many_threads", many_threads},
                      {"memory", bytes_of(memory)},
                      {"stack_limit", layout.stack_limit},
                      {"ignored", layout.ignored},
                      {"process_state", bytes_of(process_state)},
                      {"process_notes", bytes_of(process_notes)},
                      {"speaks_through", speaks_through},
                      {"link", link},
                      {"orders", bytes_of(orders)}};
    std::string text;
    Json::to_cbor(all, text);
    return text;
}

SecondLife SecondLife::from_text(const std::string& text) {
    try {
        const Json all = Json::from_cbor(text);
        SecondLife life;
        life.epoch = all.at("epoch");
        life.anchors = {all.at("upper"), all.at("threads"), all.at("bridge_version"), all.at("interface")};
        life.program = text_of(all.at("program"));
        life.many_threads = all.at("many_threads");
        life.memory = text_of(all.at("memory"));
        life.layout = {all.at("stack_limit"), all.at("ignored")};
        life.process_state = text_of(all.at("process_state"));
        life.process_notes = text_of(all.at("process_notes"));
        life.speaks_through = all.at("speaks_through");
        life.link = all.at("link");
        life.orders = text_of(all.at("orders"));
        return life;
    } catch (const Json::exception& error) {
        fail("what this process hands over is damaged: {}", error.what());
    }
}

namespace {

// Until there is an agent, `link` is there to say why not.
[[noreturn]] void take_over(const SecondLife& life, const tree::AgentConfig& config,
                            std::unique_ptr<tree::AgentLink>& link) {
    const image::KeyPointer key = image_key(config);
    const MpiFacts facts = start_beside_the_program(life, config);
    make_bridge(facts, {config.protocol, config.moved, config.restarts, config.message_log, config.log_bytes,
                        config.node_dir()});
    if (const std::string why = why_not_continued(life.anchors); !why.empty())
        fail("the program that runs {}", why);
    NewLowerHalf half(config, facts, {life.anchors, life.program, "", config.job_number(), {}, {}, key});
    half.adopt();
    half.meet_ranks();
    half.start_agent(link, nullptr, SecondLink{life.epoch, life.link, life.orders});
    RestoredParts parts{life.process_state, half.make_threads()};
    half.renew_ids();
    if (parts.error.empty()) {
        split::process::Restored restored =
            split::process::restore_in_child(life.process_state, process_limits());
        parts.error = restored.error;
        say_each(facts.rank(), restored.warnings);
    }
    tree::AgentConfig::forget_environment();
    half.hand_over(std::move(parts));
    threads::continue_main();
}

}  // namespace

void continue_in_child(const SecondLife& life) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // as the node daemon starts ranks
    // As after exec: the library that starts now shall not see the program's handlers. They come back with
    // the rest of the process.
    split::reset_signals();
    split::resume_layout(life.layout);
    split::spare_upper_addresses();
    split::prepare_lower();
    const char* base = std::getenv("FERMATA_RUN_BASE");
    split::thread_pointer::redirect(base ? base : "");
    const tree::AgentConfig config = tree::AgentConfig::from_environment();
    start_log(fmt::format("pid {}", ::getpid()));
    auto link = std::make_unique<tree::AgentLink>(config, Fd(life.speaks_through));
    try {
        split::process::end_with_peer(link->fd(), true);  // until Restored
        take_over(life, config, link);
    } catch (const std::exception& error) {
        if (link) link->send(wire::Fatal{error.what(), static_cast<int32_t>(ExitCode::failed)});
        ::_exit(static_cast<int>(ExitCode::failed));
    }
}

}  // namespace fermata::lower
