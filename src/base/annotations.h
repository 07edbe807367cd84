// Which lock protects what, and which function wants which lock held: clang checks it (tools/tidy, option
// -Wthread-safety; "Thread Safety Analysis" in clang's manual). Other compilers see nothing.
#pragma once

#if defined(__clang__)
#define FERMATA_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define FERMATA_THREAD_SAFETY(attribute)
#endif

#define FERMATA_LOCK FERMATA_THREAD_SAFETY(capability("lock"))
#define FERMATA_LOCK_SCOPE FERMATA_THREAD_SAFETY(scoped_lockable)
#define FERMATA_GUARDED_BY(lock) FERMATA_THREAD_SAFETY(guarded_by(lock))
#define FERMATA_WANTS(...) FERMATA_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define FERMATA_TAKES(...) FERMATA_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define FERMATA_GIVES(...) FERMATA_THREAD_SAFETY(release_capability(__VA_ARGS__))
// Marks code that the analysis cannot follow: a lock that is taken under a condition (one thread alone needs
// none), a lambda that runs where it stands, data that its only writer reads.
#define FERMATA_LOCKS_UNSEEN FERMATA_THREAD_SAFETY(no_thread_safety_analysis)
