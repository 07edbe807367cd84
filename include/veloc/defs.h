/* Numbers of VeloC's interface (veloc.h). */
#ifndef FERMATA_VELOC_DEFS_H
#define FERMATA_VELOC_DEFS_H

#define VELOC_SUCCESS (0)
#define VELOC_FAILURE (-1)

/* Room for a path that VELOC_Route_file() writes. */
#define VELOC_MAX_NAME (1024)

/* All ids; those in the list; those that are not in it. */
#define VELOC_RECOVER_ALL (0)
#define VELOC_RECOVER_SOME (1)
#define VELOC_RECOVER_REST (2)
#define VELOC_CKPT_ALL (0)
#define VELOC_CKPT_SOME (1)
#define VELOC_CKPT_REST (2)

#define VELOC_OBSERVE_CKPT_END (0)

#endif
