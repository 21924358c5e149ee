import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Semaphore;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple6;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.AllWindowedStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.api.windowing.windows.Window;

/**
 * Windows over files of events in one Flink job that goes on from file to file.
 *
 * <p>Arguments: window (session, tumbling, sliding, count), size, slide, keyed (true, false), allowed lateness in ms,
 * state backend (hashmap, rocksdb), parallelism, folder for results. Each line on stdin is a watermark and the path of a
 * file: 24 bytes an event (key, time in ms, value; little-endian). The watermark follows the file's events. When every
 * sink has seen it, "done" is printed. Results: 48 bytes (key, start, end, events, sum, greatest; big-endian).
 */
public final class WindowBench {
  private static final int EVENT_BYTES = 24;

  // Source, sinks and the reader of stdin are in one process.
  private static final List<BlockingQueue<Order>> ORDERS = new ArrayList<>();
  private static final Semaphore PASSED = new Semaphore(0);

  private record Order(long watermark, Path file) {}

  public static void main(String[] arguments) throws Exception {
    String kind = arguments[0];
    long size = Long.parseLong(arguments[1]);
    long slide = Long.parseLong(arguments[2]);
    boolean keyed = Boolean.parseBoolean(arguments[3]);
    Duration lateness = Duration.ofMillis(Long.parseLong(arguments[4]));
    int parallelism = Integer.parseInt(arguments[6]);
    // Count windows go by order of arrival, which two readers would not keep.
    int readers = kind.equals("count") ? 1 : parallelism;

    Configuration settings = new Configuration();
    settings.setString("state.backend.type", arguments[5]);
    settings.setString("taskmanager.memory.managed.size", "512m");
    settings.setString("taskmanager.numberOfTaskSlots", arguments[6]);
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.createLocalEnvironment(parallelism, settings);
    environment.getConfig().enableObjectReuse();
    for (int reader = 0; reader < readers; reader++) {
      ORDERS.add(new ArrayBlockingQueue<>(1));
    }
    DataStream<Tuple3<Long, Long, Long>> events = environment.addSource(new Files()).setParallelism(readers);
    DataStream<Tuple6<Long, Long, Long, Long, Long, Long>> results =
        windows(events, kind, size, slide, keyed, lateness);
    int sinks = keyed ? parallelism : 1;
    results.addSink(new Results(arguments[7])).setParallelism(sinks);

    Thread reader = new Thread(() -> serve(sinks));
    reader.setDaemon(true);
    reader.start();
    System.out.println("ready");
    environment.execute("windows");
  }

  private static DataStream<Tuple6<Long, Long, Long, Long, Long, Long>> windows(
      DataStream<Tuple3<Long, Long, Long>> events,
      String kind,
      long size,
      long slide,
      boolean keyed,
      Duration lateness) {
    KeyedStream<Tuple3<Long, Long, Long>, Long> byKey = events.keyBy(new Key());
    if (kind.equals("count")) {
      return byKey.countWindow(size).aggregate(new CountSumMax(), new Whole());
    }
    WindowAssigner<Object, TimeWindow> assigner =
        switch (kind) {
          case "session" -> EventTimeSessionWindows.withGap(Duration.ofMillis(size));
          case "tumbling" -> TumblingEventTimeWindows.of(Duration.ofMillis(size));
          default -> SlidingEventTimeWindows.of(Duration.ofMillis(size), Duration.ofMillis(slide));
        };
    if (keyed) {
      return byKey.window(assigner).allowedLateness(lateness).aggregate(new CountSumMax(), new Bounds());
    }
    AllWindowedStream<Tuple3<Long, Long, Long>, TimeWindow> all = events.windowAll(assigner);
    return all.allowedLateness(lateness).aggregate(new CountSumMax(), new AllBounds());
  }

  /** Hands each file to the source, waits until every sink has seen its watermark, and says so. */
  private static void serve(int sinks) {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] order = line.split(" ", 2);
        Path file = order.length > 1 ? Path.of(order[1]) : null;
        hand(new Order(Long.parseLong(order[0]), file));
        PASSED.acquire(sinks);
        System.out.println("done");
      }
      // An end of the job would be an end of time: every window would fire. What was written is flushed.
      Runtime.getRuntime().halt(0);
    } catch (IOException | InterruptedException error) {
      error.printStackTrace();
      System.exit(1);
    }
  }

  private static void hand(Order order) throws InterruptedException {
    for (BlockingQueue<Order> queue : ORDERS) {
      queue.put(order);
    }
  }

  /** Reads its share of each file, then sends the file's watermark. */
  private static final class Files extends RichParallelSourceFunction<Tuple3<Long, Long, Long>> {
    private volatile boolean running = true;

    @Override
    public void run(SourceContext<Tuple3<Long, Long, Long>> context) throws Exception {
      int here = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
      int readers = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
      while (running) {
        Order order = ORDERS.get(here).take();
        if (order.file() != null) {
          read(order.file(), here, readers, context);
        }
        context.emitWatermark(new Watermark(order.watermark()));
      }
    }

    private static void read(Path file, int here, int readers, SourceContext<Tuple3<Long, Long, Long>> context)
        throws IOException {
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
        long events = channel.size() / EVENT_BYTES;
        long first = events * here / readers;
        long bytes = (events * (here + 1) / readers - first) * EVENT_BYTES;
        ByteBuffer buffer =
            channel.map(FileChannel.MapMode.READ_ONLY, first * EVENT_BYTES, bytes).order(ByteOrder.LITTLE_ENDIAN);
        while (buffer.hasRemaining()) {
          long key = buffer.getLong();
          long time = buffer.getLong();
          context.collectWithTimestamp(Tuple3.of(key, time, buffer.getLong()), time);
        }
      }
    }

    @Override
    public void cancel() {
      running = false;
    }
  }

  /** The key of an event. */
  private static final class Key implements KeySelector<Tuple3<Long, Long, Long>, Long> {
    @Override
    public Long getKey(Tuple3<Long, Long, Long> event) {
      return event.f0;
    }
  }

  /** How many events, the sum of their values and the greatest of them. */
  private static final class CountSumMax
      implements AggregateFunction<Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>> {
    @Override
    public Tuple3<Long, Long, Long> createAccumulator() {
      return Tuple3.of(0L, 0L, Long.MIN_VALUE);
    }

    @Override
    public Tuple3<Long, Long, Long> add(Tuple3<Long, Long, Long> event, Tuple3<Long, Long, Long> so) {
      return Tuple3.of(so.f0 + 1, so.f1 + event.f2, Math.max(so.f2, event.f2));
    }

    @Override
    public Tuple3<Long, Long, Long> getResult(Tuple3<Long, Long, Long> so) {
      return so;
    }

    @Override
    public Tuple3<Long, Long, Long> merge(Tuple3<Long, Long, Long> one, Tuple3<Long, Long, Long> other) {
      return Tuple3.of(one.f0 + other.f0, one.f1 + other.f1, Math.max(one.f2, other.f2));
    }
  }

  private static <W extends Window> Tuple6<Long, Long, Long, Long, Long, Long> row(
      long key, W window, Iterable<Tuple3<Long, Long, Long>> aggregates) {
    Tuple3<Long, Long, Long> found = aggregates.iterator().next();
    long start = window instanceof TimeWindow time ? time.getStart() : 0;
    long end = window instanceof TimeWindow time ? time.getEnd() : 0;
    return Tuple6.of(key, start, end, found.f0, found.f1, found.f2);
  }

  /** A result with its key and window. */
  private static final class Bounds
      extends ProcessWindowFunction<
          Tuple3<Long, Long, Long>, Tuple6<Long, Long, Long, Long, Long, Long>, Long, TimeWindow> {
    @Override
    public void process(
        Long key,
        Context context,
        Iterable<Tuple3<Long, Long, Long>> aggregates,
        org.apache.flink.util.Collector<Tuple6<Long, Long, Long, Long, Long, Long>> out) {
      out.collect(row(key, context.window(), aggregates));
    }
  }

  /** A result with its key alone. */
  private static final class Whole
      extends ProcessWindowFunction<
          Tuple3<Long, Long, Long>, Tuple6<Long, Long, Long, Long, Long, Long>, Long, GlobalWindow> {
    @Override
    public void process(
        Long key,
        Context context,
        Iterable<Tuple3<Long, Long, Long>> aggregates,
        org.apache.flink.util.Collector<Tuple6<Long, Long, Long, Long, Long, Long>> out) {
      out.collect(row(key, context.window(), aggregates));
    }
  }

  /** A result with its window alone. */
  private static final class AllBounds
      extends ProcessAllWindowFunction<
          Tuple3<Long, Long, Long>, Tuple6<Long, Long, Long, Long, Long, Long>, TimeWindow> {
    @Override
    public void process(
        Context context,
        Iterable<Tuple3<Long, Long, Long>> aggregates,
        org.apache.flink.util.Collector<Tuple6<Long, Long, Long, Long, Long, Long>> out) {
      out.collect(row(0, context.window(), aggregates));
    }
  }

  /** Writes results into a file of its own, and reports when it has seen a watermark. */
  private static final class Results extends RichSinkFunction<Tuple6<Long, Long, Long, Long, Long, Long>> {
    private final String folder;
    private transient DataOutputStream file;

    Results(String folder) {
      this.folder = folder;
    }

    @Override
    public void open(OpenContext context) throws IOException {
      int here = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
      file = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(folder + "/" + here + ".results")));
    }

    @Override
    public void invoke(Tuple6<Long, Long, Long, Long, Long, Long> row, Context context) throws IOException {
      for (int column = 0; column < 6; column++) {
        file.writeLong(row.<Long>getField(column));
      }
    }

    @Override
    public void writeWatermark(org.apache.flink.api.common.eventtime.Watermark watermark) throws IOException {
      file.flush();
      PASSED.release();
    }

    @Override
    public void close() throws IOException {
      if (file != null) {
        file.close();
      }
    }
  }

  private WindowBench() {}
}
