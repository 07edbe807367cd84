// Blocked waits (step e of docs/collective-clock.md): a thread that is needed elsewhere and stands in a wait
// says what it waits for.
#include <algorithm>

#include "clock/clock.h"
#include "clock/patience.h"

namespace fermata::clock {

bool RankClock::blocked(Slot& s, WaitSite& site, uint64_t now_ns, bool in_wait) {
    if (!policy_.demands) return false;
    Locked guard(lock_);
    if (in_wait && site.era != cut_.era) s.waits = true;
    if (site.era != cut_.era) {
        site = WaitSite{};
        site.era = cut_.era;
    }
    if (!is_pending() || cut_.frozen || !may_act(s)) {
        site.since = 0;
        return false;
    }
    if (site.since == 0) site.since = site.asked = moment(now_ns);
    if (!passed(now_ns, site.asked, options_.demand_delay_ns)) return false;
    site.asked = moment(now_ns);
    return true;
}

void RankClock::need_message(Slot& s, Rank source, Labels wanted) {
    if (source < 0 || source >= options_.world) return;
    if (source == options_.me) {
        // Another thread of this rank must send it: the stall rule's business, if it is held at a gate.
        Locked guard(lock_);
        s.waits = false;
        return;
    }
    {
        Locked guard(lock_);
        if (!is_pending() || cut_.frozen) return;
        uint64_t count = received_total(source) + 1;
        Peer& known = demanded_.of(arena_, source);
        // Several threads may wait for the same number, for different messages.
        if (known.count > count || (known.count == count && (wanted & ~known.wanted) == 0) || !act(s)) return;
        known.wanted = known.count == count ? known.wanted | wanted : wanted;
        known.count = count;
        Writer w(scratch_, sizeof scratch_);
        w.header(Kind::demand, cut_.epoch).rank(source).rank(options_.me).u64(count).u64(known.wanted);
        queue(w);
    }
    environment_.poke(environment_.self);
}

void RankClock::need_collective(Slot& s, Comm& c, Instance k) {
    {
        Locked guard(lock_);
        if (!is_pending() || cut_.frozen || k <= c.target || k <= c.raised || !act(s)) return;
        raise(c, k);
    }
    environment_.poke(environment_.self);
}

void RankClock::need_anything(Slot& s, WaitSite& site) {
    {
        Locked guard(lock_);
        if (!is_pending() || cut_.frozen || site.era != cut_.era) return;
        if (s.licence_era != cut_.era) {
            s.licence_era = cut_.era;
            s.licences = 0;
        }
        uint64_t delay = patience(options_.demand_delay_ns, s.licences);
        if (site.asked - std::max(site.since, site.licensed_at) < delay || !act(s)) return;
        s.licences++;
        site.licensed_at = site.asked;
        if (!site.licensed) licence_.sites++;
        site.licensed = true;
        licence_.out = true;
        licence(++licence_.credit);
    }
    environment_.poke(environment_.self);
}

void RankClock::waited_slow(Slot& s, WaitSite& site) {
    bool poke = false;
    {
        Locked guard(lock_);
        if (site.licensed && site.era == cut_.era && is_pending() && --licence_.sites == 0 && licence_.out &&
            !licence_.for_access) {
            revoke();
            poke = true;
        }
        if (&site != &s.poll_site) s.waits = false;
        site = WaitSite{};
    }
    if (poke) environment_.poke(environment_.self);
}

}  // namespace fermata::clock
