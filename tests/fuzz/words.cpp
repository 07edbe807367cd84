// Texts that people, files and environments hand in: durations, words, addresses, requests at the control
// socket.
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "fuzz.h"
#include "image/codec.h"
#include "image/save_options.h"
#include "launch/launcher_options.h"
#include "launch/own/hosts.h"
#include "root/control/control.h"
#include "tree/root_address.h"

namespace fermata::fuzz {
namespace {

std::string text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

std::vector<Bytes> seeds_of(std::initializer_list<std::string> texts) {
    std::vector<Bytes> all;
    for (const std::string& text : texts) all.emplace_back(text.begin(), text.end());
    return all;
}

// A refusal is one line that says what it is about, with the exit code for wrong command lines.
void require_usage(const Error& error, const std::string& what) {
    require(error.code() == ExitCode::usage && std::string(error.what()).starts_with(what),
            std::string("an unclear refusal: ") + error.what());
}

Verdict run_duration(Input input) {
    // As a word of a command line has it.
    std::string text = text_of(input).c_str();
    try {
        double seconds = parse_duration(text, "--interval");
        require(seconds >= 0 && seconds <= kLongestDuration, "an impossible duration was accepted");
        return Verdict::accepted;
    } catch (const Error& error) {
        require_usage(error, "--interval: ");
        return Verdict::refused;
    }
}

std::vector<Bytes> duration_seeds() {
    return seeds_of({"0.2s", "10m", "1h30m", "500ms", "7", "2d", "15min", "1e3s", "36525d"});
}

// What was understood says the same when it is read again by a rank.
Verdict run_save_options(Input input) {
    try {
        image::SaveOptions options = image::SaveOptions::parse(text_of(input));
        const image::WriteOptions& o = options.write;
        require(o.threads <= 64 && image::name_of(o.codec)[0] != 0, "an impossible option was accepted");
        require(o.level >= 1 && o.level <= 19, "an impossible level was accepted");
        std::string text = options.to_text();
        require(image::SaveOptions::from_text(text).to_text() == text,
                "words changed on their way to a rank");
        return Verdict::accepted;
    } catch (const Error& error) {
        require(error.code() == ExitCode::usage, "a word was refused with another exit code");
        return Verdict::refused;
    }
}

std::vector<Bytes> save_options_seeds() {
    return seeds_of({"forked compress=zstd:3 threads=4", "compress=auto,io=direct layout=shared",
                     "compress=shuffle-lz4 io=buffered busy=refuse"});
}

// What was split can be put together again.
Verdict run_mpiexec_words(Input input) {
    try {
        std::vector<std::string> words = launch::split_words(text_of(input));
        std::string again;
        for (const std::string& word : words) {
            again += again.empty() ? "'" : " '";
            for (char c : word) again += c == '\'' ? std::string("'\\''") : std::string(1, c);
            again += "'";
        }
        require(launch::split_words(again) == words, "words changed by quoting them");
        return Verdict::accepted;
    } catch (const Error& error) {
        require_usage(error, "--mpiexec-args ");
        return Verdict::refused;
    }
}

std::vector<Bytes> mpiexec_words_seeds() {
    return seeds_of({"--map-by slot -x A=b", "'a b' \"c \\\" d\" e\\ f", "-hosts n1:2,n2:2 '' \"\""});
}

Verdict run_addresses(Input input) {
    std::vector<tree::Address> all = tree::parse_addresses(text_of(input), "here");
    require(all.size() <= 64, "too many addresses");
    for (const tree::Address& one : all)
        require(one.size <= sizeof one.where &&
                    (one.where.ss_family == AF_INET || one.where.ss_family == AF_INET6),
                "an address of no kind");
    return all.empty() ? Verdict::refused : Verdict::accepted;
}

std::vector<Bytes> addresses_seeds() {
    return seeds_of(
        {"127.0.0.1:4711@here,10.0.0.5:4711,[fd00::5]:4711", "10.0.0.5:1", "[::ffff:127.0.0.1]:9@here"});
}

// The first byte chooses: a list of hosts, a hostfile, tasks per node as Slurm writes them.
Verdict run_hosts(Input input) {
    if (input.empty()) return Verdict::refused;
    std::string text = text_of(input.subspan(1));
    try {
        if (input[0] % 3 == 2) {
            for (uint32_t count : launch::own::slurm_counts(text))
                require(count > 0 && count <= launch::own::kMostSlots, "an impossible number of tasks");
            return Verdict::accepted;
        }
        auto hosts =
            input[0] % 3 == 0 ? launch::own::hosts_in_list(text) : launch::own::hosts_in_file(text, "f");
        require(!hosts.empty() && hosts.size() <= launch::own::kMostHosts, "an impossible number of hosts");
        for (const launch::own::Host& host : hosts)
            require(!host.name.empty() && host.name[0] != '-' && host.slots <= launch::own::kMostSlots &&
                        (host.slots > 0 || !host.given),
                    "an impossible host");
        return Verdict::accepted;
    } catch (const Error& error) {
        require(error.code() == ExitCode::usage, "a refusal with another exit code");
        return Verdict::refused;
    }
}

std::vector<Bytes> hosts_seeds() {
    return seeds_of({std::string(1, '\0') + "a,b:4,c",
                     std::string(1, '\1') + "a slots=2 max_slots=4\nb:3 # c\n",
                     std::string(1, '\2') + "2(x3),1"});
}

Verdict run_control_request(Input input) {
    auto request = root::parse_request(text_of(input));
    if (!request) return Verdict::refused;
    require(request->timeout >= 0 && request->timeout <= kLongestDuration,
            "an impossible timeout was accepted");
    try {
        auto again = root::parse_request(root::to_json(*request));
        require(again && again->verb == request->verb && again->stop == request->stop &&
                    again->checkpoint_only == request->checkpoint_only &&
                    again->diagnosis == request->diagnosis,
                "a request is not what its bytes say");
    } catch (const Error& error) {
        throw Broken(error.what());
    }
    return Verdict::accepted;
}

std::vector<Bytes> control_request_seeds() {
    root::ControlRequest all;
    all.verb = "checkpoint";
    all.stop = all.checkpoint_only = all.diagnosis = true;
    all.timeout = 12.5;
    return seeds_of(
        {root::to_json(all), R"({"verb":"status"})", R"({"verb":"cancel","stop":false,"more":[1,{}]})"});
}

}  // namespace

const Target duration{"duration", run_duration, nullptr, duration_seeds, nullptr};
const Target save_options{"save_options", run_save_options, nullptr, save_options_seeds, nullptr};
const Target hosts{"hosts", run_hosts, nullptr, hosts_seeds, nullptr};
const Target mpiexec_words{"mpiexec_words", run_mpiexec_words, nullptr, mpiexec_words_seeds, nullptr};
const Target addresses{"addresses", run_addresses, nullptr, addresses_seeds, nullptr};
const Target control_request{"control_request", run_control_request, nullptr, control_request_seeds, nullptr};

}  // namespace fermata::fuzz
