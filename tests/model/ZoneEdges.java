import java.io.*;
import java.time.*;
import java.time.zone.*;
import java.util.*;

/** Prints, for each zone named in the input, its offset and transitions from 1970 to 2037, and the edges around each of them. */
public class ZoneEdges {
    static final LocalTime[] STARTS = {LocalTime.MIDNIGHT, LocalTime.of(2, 30), LocalTime.of(4, 0), LocalTime.of(23, 59)};
    static final int[] MINUTES = {15, 60, 120, 360};

    /** First instant at which the clock is at or past a local time that is no earlier than all before it. */
    static Instant edge(ZoneRules rules, LocalDateTime local) {
        ZoneOffsetTransition transition = rules.getTransition(local);
        if (transition != null && transition.isGap()) return transition.getInstant();
        return local.toInstant(rules.getValidOffsets(local).get(0));
    }

    static void print(PrintStream out, String what, Instant change, Collection<Instant> edges) {
        StringBuilder line = new StringBuilder("edges " + what + " " + change.toEpochMilli());
        for (Instant edge : edges) line.append(' ').append(edge.toEpochMilli());
        out.println(line);
    }

    public static void main(String[] names) throws IOException {
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 20));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Instant first = Instant.parse("1970-01-01T00:00:00Z"), last = Instant.parse("2038-01-01T00:00:00Z");
        for (String name = input.readLine(); name != null; name = input.readLine()) {
            ZoneRules rules;
            try {
                rules = ZoneId.of(name).getRules();
            } catch (DateTimeException unknown) {
                continue;
            }
            out.println("zone " + name + " " + rules.getOffset(first).getTotalSeconds());
            for (ZoneOffsetTransition change = rules.nextTransition(first.minusMillis(1));
                    change != null && change.getInstant().isBefore(last);
                    change = rules.nextTransition(change.getInstant())) {
                Instant at = change.getInstant();
                out.println("change " + at.toEpochMilli() + " " + change.getOffsetAfter().getTotalSeconds());
                LocalDate date = change.getDateTimeBefore().toLocalDate();
                for (LocalTime start : STARTS) {
                    SortedSet<Instant> edges = new TreeSet<>();
                    for (int day = -2; day <= 3; day++) edges.add(edge(rules, date.plusDays(day).atTime(start)));
                    print(out, "day " + start.toSecondOfDay(), at, edges);
                }
                SortedSet<Instant> months = new TreeSet<>(), weeks = new TreeSet<>();
                for (int month = -1; month <= 2; month++)
                    months.add(edge(rules, date.withDayOfMonth(1).plusMonths(month).atStartOfDay()));
                for (int week = -1; week <= 2; week++)
                    weeks.add(edge(rules, date.with(DayOfWeek.SUNDAY).plusWeeks(week).atStartOfDay()));
                print(out, "month 0", at, months);
                print(out, "week 0", at, weeks);
                for (int minutes : MINUTES) {
                    SortedSet<Instant> edges = new TreeSet<>();
                    LocalDateTime local = date.minusDays(1).atStartOfDay();
                    for (; local.isBefore(date.plusDays(3).atStartOfDay()); local = local.plusMinutes(minutes)) {
                        List<ZoneOffset> valid = rules.getValidOffsets(local);
                        if (valid.isEmpty()) edges.add(rules.getTransition(local).getInstant());
                        for (ZoneOffset offset : valid) edges.add(local.toInstant(offset));
                    }
                    Duration around = Duration.ofMinutes(Math.max(180, 2 * minutes));
                    print(out, "minute " + minutes, at, edges.subSet(at.minus(around), at.plus(around)));
                }
            }
        }
        out.flush();
    }
}
