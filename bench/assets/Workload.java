// SPDX-License-Identifier: GPL-2.0-or-later
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** What `braid bench` measures HotSpot by: as workload.py. CPU time is that of this thread, without
 * the compilers' and the collector's. */
public class Workload {
    static volatile long sink;

    static int callee(int x) {
        return x * 1664525 + 1013904223;
    }

    static long calls(int n) {
        int x = 1;
        for (int i = 0; i < n; i++)
            x = callee(x);
        sink = x;
        return n;
    }

    static final String[] NAMES = {
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"
    };
    static final int ENTRIES = 12; // fewer: under probes the library's own calls cost, too

    static Map<String, Object> entry(int i) {
        Map<String, Object> one = new HashMap<>();
        one.put("id", i);
        one.put("name", NAMES[i % 8] + i * 7919 % 1000);
        one.put("size", i * 104729 % 1009);
        one.put("tags", new String[] { NAMES[i % 3], NAMES[i % 5], NAMES[i % 7] });
        return one;
    }

    static Integer sizeOf(Map<String, Object> one) {
        return (Integer) one.get("size");
    }

    static String asText(Map<String, Object> one) {
        String tags = String.join(", ", new TreeSet<>(Arrays.asList((String[]) one.get("tags"))));
        return "{\"id\": " + one.get("id") + ", \"name\": \"" + one.get("name") + "\", \"size\": "
            + one.get("size") + ", \"tags\": \"" + tags + "\"}";
    }

    static Map<String, Object> parsed(String text) {
        Map<String, Object> result = new HashMap<>();
        for (String part : text.substring(1, text.length() - 1).split(", \"")) {
            int colon = part.indexOf(": ");
            String key = colon < 0 ? part : part.substring(0, colon);
            String value = colon < 0 ? "" : part.substring(colon + 2).replace("\"", "");
            boolean digits = !value.isEmpty() && Character.isDigit(value.charAt(0));
            result.put(key.replace("\"", ""), digits ? (Object) Integer.valueOf(value) : value);
        }
        return result;
    }

    static long unit() {
        List<Map<String, Object>> found = new ArrayList<>();
        for (int i = 0; i < ENTRIES; i++)
            found.add(entry(i));
        found.sort(Comparator.comparing(Workload::sizeOf));
        StringBuilder text = new StringBuilder();
        for (Map<String, Object> one : found)
            text.append(asText(one)).append('\n');
        long total = 0;
        for (String line : text.toString().split("\n"))
            total += sizeOf(parsed(line));
        Map<String, Integer> words = new HashMap<>();
        for (String word : text.toString().replace('"', ' ').replace(':', ' ').split("\\s+"))
            words.merge(word, 1, Integer::sum);
        return total + words.size();
    }

    static long work(int n) {
        for (int i = 0; i < n; i++)
            sink = unit();
        return 4L * ENTRIES * n + n;
    }

    static void deep(int n) {
        if (n > 1)
            deep(n - 1);
        System.out.println("0 0");
        for (;;)
            sink++;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        System.out.println("READY " + System.getProperty("java.version"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            int n = Integer.parseInt(words[1]);
            if (words[0].equals("deep"))
                deep(n);
            long start = threads.getCurrentThreadCpuTime();
            long calls = words[0].equals("calls") ? calls(n) : work(n);
            System.out.println(threads.getCurrentThreadCpuTime() - start + " " + calls);
        }
    }
}
