/* Thread-locals that ld.so must find room for before anything runs, as of jemalloc and tracers. */
__attribute__((tls_model("initial-exec"))) __thread char thread_locals[6000];
__attribute__((tls_model("initial-exec"))) __thread int thread_local_value = 41;

int next_thread_local(void) {
    thread_locals[sizeof thread_locals - 1] = (char)++thread_local_value;
    return thread_locals[sizeof thread_locals - 1];
}
