// A Java program whose ranks speak MPI by JNI (ring.c): threads that allocate, the garbage collector, a child process, before
// and after the moment of the checkpoint.
//
//     java -cp FOLDER Ring LIBRARY
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

public class Ring {
    static native int init();

    static native int least(int value);

    static native void end();

    static volatile boolean quit;

    static void churn(AtomicLong turns) {
        List<byte[]> kept = new ArrayList<>();
        while (!quit) {
            kept.add(new byte[10000]);
            if (kept.size() > 500) kept.clear();
            if (turns.incrementAndGet() % 50 == 0) Thread.yield();
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        int rank = init();
        long self = ProcessHandle.current().pid();
        AtomicLong turns = new AtomicLong();
        Thread worker = new Thread(() -> churn(turns));
        worker.start();
        Map<Integer, String> map = new HashMap<>();
        for (int i = 0; i < 20000; i++) map.put(i, "value " + i);
        String hold = System.getenv("HOLD_FILE");
        least(0);
        if (rank == 0) System.out.println("READY");
        while (least(hold == null || Files.exists(Path.of(hold)) ? 1 : 0) == 0) Thread.sleep(3);
        System.gc();
        long before = turns.get();
        while (turns.get() == before) Thread.sleep(1);
        quit = true;
        worker.join();
        long letters = 0;
        for (int i = 0; i < 20000; i++) letters += map.get(i).length();
        int child = new ProcessBuilder("/bin/true").start().waitFor();
        boolean same = self == ProcessHandle.current().pid();
        int right = least(letters == 208890 && child == 0 && same ? 1 : 0);
        if (rank == 0) System.out.println(right == 1 ? "right" : "letters " + letters + ", child " + child + ", pid " + same);
        end();
    }
}
