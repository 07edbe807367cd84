// Job is all that a checkpoint sees of the job that it is of: who is there, how to tell them something, and a
// moment for everything else. A test puts a fake one in its place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "journal/kind.h"
#include "launch/renewal.h"
#include "store/generation.h"
#include "tree/ranks.h"
#include "wire/message.h"

namespace fermata::root {

class Job {
  public:
    virtual ~Job() = default;

    // ---- who is there

    struct State {
        bool running = false;    // all ranks are here and, after a restart, released
        bool whole = false;      // every node daemon has answered the newest call of the roll
        bool finalized = false;  // every rank has called MPI_Finalize
        bool ended = false;      // the launcher has ended, or a rank has ended the job
        bool lost = false;       // a rank or a daemon is gone
        std::string why_over;    // why no checkpoint can be made any more; "" = one can
        int here = 0;            // ranks
        bool replaced = false;   // a copy has a rank's place, and is not that rank yet: nobody may save it
    };
    virtual State state() const = 0;
    virtual uint32_t ranks() const = 0;
    // A node daemon that has ranks.
    struct Daemon {
        int id = 0, child = 0;  // child: the daemon right below the root in whose subtree it is
        std::string host;
        tree::Ranks ranks;
    };
    virtual std::vector<Daemon> daemons() const = 0;
    // A line on ranks that are not there yet, and on those that run a starter; "" = none does.
    virtual std::string who_is_missing() const = 0;
    virtual std::string who_is_in_a_starter() const = 0;
    // A manifest with what is true for each generation of this job.
    virtual store::Manifest manifest() const = 0;

    // Why its ranks cannot get new lower halves: a line; "" = they can. Throws Error when not such ones.
    virtual std::string why_no_renewal(const launch::Renewal& wanted) = 0;
    // Makes ready for the next world of theirs; the order for it, without the epoch.
    virtual wire::Renew next_world() = 0;
    // They have come there.
    virtual void renewed() = 0;

    // Images of these ranks are in the memory of their nodes, as this generation: other nodes are told to
    // make copies of them, and have answered, well or not.
    virtual void start_copies(const tree::Ranks& of, Generation images) = 0;
    virtual bool copies_have_started() const = 0;

    // ---- telling them

    virtual void tell(const wire::Message& message) = 0;  // all daemons
    virtual void tell(int daemon, const wire::Message& message) = 0;
    virtual void tell_children(const wire::Message& message) = 0;  // the daemons right below the root

    // ---- everything else of the job goes on

    // For at most so long, until something has come.
    virtual void serve(int milliseconds) = 0;
    // Sees to a start that takes too long, and to ranks that are gone.
    virtual void watch() = 0;

    // ---- what becomes of it

    virtual void note(journal::Kind kind, nlohmann::json fields) = 0;
    // Tells the client that has asked for the checkpoint.
    virtual void entered(int client, const std::string& phase) = 0;
    virtual void committed(uint32_t epoch) = 0;

    // ---- who waits where

    // Asks every rank, for the journal; false: the question is under way already, or there is no journal.
    virtual bool ask_who_waits() = 0;
    // The answers, when all are there, or `now` those that are; none: not yet.
    virtual std::optional<std::string> who_waits(bool now) = 0;
    // Asks, and serves until the answers are there.
    virtual std::string diagnose() = 0;
};

}  // namespace fermata::root
