// Attributes that the kernel tells and takes from the thread itself only.
//
// Both functions run on upper threads in lower code: no TLS, no libc.
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <sys/prctl.h>

#include "split/threads/bridge_text.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::threads {
namespace {

constexpr long kNodes = long{OwnAttributes::kNodeWords} * 64;
constexpr int kDefaultPolicy = 0;

int32_t launchers_death_signal;

FERMATA_NO_TLS int32_t death_signal() noexcept {
    int32_t signal = 0;
    raw::call(SYS_prctl, PR_GET_PDEATHSIG, raw::word(&signal));
    return signal;
}

}  // namespace

FERMATA_NO_TLS void note_launchers_death_signal() noexcept { launchers_death_signal = death_signal(); }

void settle_credentials() noexcept {
    raw::call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

FERMATA_NO_TLS void note_own_attributes(OwnAttributes* own) noexcept {
    own->io_priority = static_cast<int32_t>(raw::call(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0));
    own->timer_slack = static_cast<int32_t>(raw::call(SYS_prctl, PR_GET_TIMERSLACK));
    own->death_signal = death_signal();
    if (own->death_signal == launchers_death_signal) own->death_signal = OwnAttributes::kLaunchers;
    own->secure_bits = static_cast<int32_t>(raw::call(SYS_prctl, PR_GET_SECUREBITS));
    own->no_new_privileges = static_cast<int32_t>(raw::call(SYS_prctl, PR_GET_NO_NEW_PRIVS));
    own->keyrings = 0;
    if (raw::call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_THREAD_KEYRING, 0) > 0) own->keyrings |= 1;
    if (raw::call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 0) > 0) own->keyrings |= 2;
    own->session_keyring =
        static_cast<int32_t>(raw::call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
    for (uint64_t& word : own->memory_nodes) word = 0;
    int32_t mode = kDefaultPolicy;
    long error = raw::call(SYS_get_mempolicy, raw::word(&mode), raw::word(own->memory_nodes), kNodes, 0, 0);
    own->memory_policy = error == 0 ? mode : -1;
}

// A failure is found by who compares afterwards (process/attributes.cpp).
FERMATA_NO_TLS void set_own_attributes(const OwnAttributes* own) noexcept {
    OwnAttributes now;
    note_own_attributes(&now);
    if (own->io_priority > 0 && own->io_priority != now.io_priority)
        raw::call(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, own->io_priority);
    if (own->timer_slack > 0) raw::call(SYS_prctl, PR_SET_TIMERSLACK, own->timer_slack);
    if (own->death_signal >= 0 && own->death_signal != now.death_signal)
        raw::call(SYS_prctl, PR_SET_PDEATHSIG, own->death_signal);
    // An ordinary user may set one of them, in its own way.
    if (own->secure_bits >= 0 && own->secure_bits != now.secure_bits &&
        raw::call(SYS_prctl, PR_SET_SECUREBITS, own->secure_bits) != 0)
        raw::call(SYS_prctl, PR_SET_KEEPCAPS, (own->secure_bits & SECBIT_KEEP_CAPS) != 0);
    if (own->no_new_privileges == 1) raw::call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (own->memory_policy > kDefaultPolicy)
        raw::call(SYS_set_mempolicy, own->memory_policy, raw::word(own->memory_nodes), kNodes);
}

int new_tid(int old_tid) noexcept {
    ThreadTable* all = table();
    if (all == nullptr) return 0;
    for (uint32_t i = 0; i < all->high_water; ++i)
        if (all->saved[i].old_tid == old_tid && all->record[i].run != Run::free) return all->record[i].tid;
    return 0;
}

}  // namespace fermata::split::threads
