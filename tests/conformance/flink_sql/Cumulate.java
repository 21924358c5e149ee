import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Results of Flink SQL's CUMULATE, for record.py next to it.
 *
 * <p>Arguments: a file, and STREAMING or BATCH. The file has a line `NAME STEP_MS MAX_SIZE_MS OFFSET_MS DELAY_MS` for
 * each case, and below it a line `KEY TIME_MS VALUE` for each event. Prints `RESULT NAME KEY START END COUNT SUM`.
 */
public final class Cumulate {
  public static void main(String[] args) throws Exception {
    Map<String[], List<Row>> cases = new LinkedHashMap<>();
    List<Row> rows = null;
    try (BufferedReader lines = Files.newBufferedReader(Path.of(args[0]))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ");
        if (words.length == 5) {
          cases.put(words, rows = new ArrayList<>());
        } else {
          rows.add(Row.of(words[0], Instant.ofEpochMilli(Long.parseLong(words[1])), Long.parseLong(words[2])));
        }
      }
    }
    for (Map.Entry<String[], List<Row>> entry : cases.entrySet()) {
      results(RuntimeExecutionMode.valueOf(args[1]), entry.getKey(), entry.getValue());
    }
  }

  private static void results(RuntimeExecutionMode mode, String[] words, List<Row> rows) throws Exception {
    StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment();
    flink.setParallelism(1);
    flink.setRuntimeMode(mode);
    flink.getConfig().setAutoWatermarkInterval(0);
    StreamTableEnvironment tables = StreamTableEnvironment.create(flink);
    tables.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
    DataStream<Row> events =
        flink.fromData(rows, Types.ROW_NAMED(new String[] {"k", "ts", "v"}, Types.STRING, Types.INSTANT, Types.LONG));
    Schema schema =
        Schema.newBuilder()
            .column("k", "STRING")
            .column("ts", "TIMESTAMP_LTZ(3)")
            .column("v", "BIGINT")
            .watermark("ts", "ts - " + interval(words[4]))
            .build();
    tables.createTemporaryView("events", tables.fromDataStream(events, schema));
    String windows =
        String.format(
            "CUMULATE(TABLE events, DESCRIPTOR(ts), %s, %s, %s)",
            interval(words[1]), interval(words[2]), interval(words[3]));
    String query =
        "SELECT k, window_start, window_end, COUNT(*), SUM(v) FROM " + windows + " GROUP BY k, window_start, window_end";
    try (CloseableIterator<Row> found = tables.executeSql(query).collect()) {
      while (found.hasNext()) {
        Row row = found.next();
        System.out.printf(
            "RESULT %s %s %d %d %d %d%n",
            words[0], row.getField(0), millis(row, 1), millis(row, 2), (Long) row.getField(3), (Long) row.getField(4));
      }
    }
  }

  private static String interval(String millis) {
    long ms = Long.parseLong(millis);
    return String.format(
        "INTERVAL '0 %02d:%02d:%02d.%03d' DAY TO SECOND(3)", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
  }

  private static long millis(Row row, int field) {
    return ((LocalDateTime) row.getField(field)).toInstant(ZoneOffset.UTC).toEpochMilli();
  }
}
