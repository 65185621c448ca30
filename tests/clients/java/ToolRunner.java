import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command line tools one after another in one JVM, because starting one costs a second.
 *
 * A command on stdin: the number of strings, then each string (class name, arguments..., standard input), as a
 * 4-byte length and UTF-8. The answer on stdout: the exit code, then stdout and stderr of the tool in the same form.
 */
public final class ToolRunner {
    /** Ends a tool that calls exit; an Error, because tools catch exceptions around it. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;

        Exited(int code) {
            super("exit " + code, null, false, false);
        }
    }

    /** The first exit code counts: some tools catch Throwable and exit again. */
    private static Integer exitCode;

    private static void exit(int code, String message) {
        if (message != null) System.err.println(message);
        if (exitCode == null) exitCode = code;
        throw new Exited(code);
    }

    public static void main(String[] ignored) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        Exit.setExitProcedure(ToolRunner::exit);
        Exit.setHaltProcedure(ToolRunner::exit);
        while (true) {
            int strings;
            try {
                strings = in.readInt();
            } catch (java.io.EOFException e) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String tool = read(in);
            String[] args = new String[strings - 2];
            for (int i = 0; i < args.length; i++) args[i] = read(in);
            InputStream stdin = new ByteArrayInputStream(read(in).getBytes(StandardCharsets.UTF_8));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            int code = run(tool, args, stdin, out, err);
            answers.writeInt(code);
            write(answers, out);
            write(answers, err);
            answers.flush();
        }
    }

    private static int run(String tool, String[] args, InputStream stdin, ByteArrayOutputStream out, ByteArrayOutputStream err) {
        System.setIn(stdin);
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        exitCode = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
            return exitCode == null ? 0 : exitCode;
        } catch (InvocationTargetException e) {
            if (exitCode != null) return exitCode;
            e.getCause().printStackTrace(System.err);
            return 1;
        } catch (ReflectiveOperationException e) {
            e.printStackTrace(System.err);
            return 127;
        } finally {
            System.out.flush();
            System.err.flush();
        }
    }

    private static String read(DataInputStream in) throws java.io.IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static void write(DataOutputStream out, ByteArrayOutputStream bytes) throws java.io.IOException {
        out.writeInt(bytes.size());
        bytes.writeTo(out);
    }
}
