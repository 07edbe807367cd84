// The limits of Fermata's own processes: they hold many connections and the job's key, so they may open as
// many files as the hard limit allows, and leave no core. What they start gets back what the user had.
#pragma once

namespace fermata {

// Of this process, from now on. Called again it does nothing.
void take_own_limits();
// In a child of such a process, before exec.
void give_back_limits();

}  // namespace fermata
