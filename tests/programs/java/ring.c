/* MPI for Ring.java. */
#include <jni.h>
#include <mpi.h>

JNIEXPORT jint JNICALL Java_Ring_init(JNIEnv* env, jclass of) {
    int level, rank;
    MPI_Init_thread(0, 0, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}
JNIEXPORT jint JNICALL Java_Ring_least(JNIEnv* env, jclass of, jint value) {
    int least = 0;
    MPI_Allreduce(&value, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return least;
}
JNIEXPORT void JNICALL Java_Ring_end(JNIEnv* env, jclass of) { MPI_Finalize(); }
