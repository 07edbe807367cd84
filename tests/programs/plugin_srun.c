/* The part of Slurm's srun that a plugin sees: it loads STANDIN_PLUGIN, offers the plugin's options beside
 * some of srun's, reads its command line and the variables by which a job hands options down, and calls the
 * plugin again. Whatever is left goes to STANDIN_SRUN. Compared with srun 22.05.8. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 16, kFirst = 1000 };
static struct spank_option* offered[kMost];
static struct option known[kMost + 8] = {
    {"nodes", 1, NULL, 'N'}, {"ntasks", 1, NULL, 'n'}, {"label", 0, NULL, 'l'}, {"pty", 0, NULL, 'P'}};
static int count;

spank_context_t spank_context(void) { return S_CTX_LOCAL; }

spank_err_t spank_option_register(spank_t spank, struct spank_option* option) {
    (void)spank;
    struct option* next = known;
    while (next->name != NULL) ++next;
    *next = (struct option){option->name, option->has_arg, NULL, kFirst + count};
    offered[count++] = option;
    return ESPANK_SUCCESS;
}

static void take(const struct spank_option* option, const char* value) {
    if (option->cb(option->val, value, 0) == 0) return;
    fprintf(stderr, "srun: error: Invalid --%s argument: %s\n", option->name, value);
    exit(255);
}

static void inherit(void) {
    for (int i = 0; i < count; ++i) {
        char name[200];
        snprintf(name, sizeof name, "SLURM_SPANK__SLURM_SPANK_OPTION_fermata_%s", offered[i]->name);
        for (char* at = name; *at; ++at)
            if (*at == '-') *at = '_';
        if (getenv(name) != NULL) take(offered[i], getenv(name));
    }
}

int main(int argc, char** argv) {
    void* plugin = dlopen(getenv("STANDIN_PLUGIN"), RTLD_NOW);
    if (plugin == NULL) {
        fprintf(stderr, "srun: error: %s\n", dlerror());
        return 1;
    }
    spank_f* begin = (spank_f*)dlsym(plugin, "slurm_spank_init");
    spank_f* read = (spank_f*)dlsym(plugin, "slurm_spank_init_post_opt");
    if (begin(NULL, 0, NULL) != ESPANK_SUCCESS) return 1;
    inherit();
    for (int found; (found = getopt_long(argc, argv, "+n:N:lK::J:", known, NULL)) != -1;) {
        if (found == '?') return 1;
        if (found >= kFirst) take(offered[found - kFirst], optarg);
    }
    if (read(NULL, 0, NULL) != ESPANK_SUCCESS) return 1;
    argv[0] = getenv("STANDIN_SRUN");
    execv(argv[0], argv);
    return 127;
}
