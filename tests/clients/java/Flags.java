import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** `--name value` pairs; `--set key=value`, any number of times, goes straight into the client's configuration. */
final class Flags {
    private final Map<String, String> values = new HashMap<>();
    private final List<String> settings = new ArrayList<>();

    Flags(String[] args) {
        for (int i = 0; i + 1 < args.length; i += 2) {
            String name = args[i].substring(2);
            if (name.equals("set")) settings.add(args[i + 1]);
            else values.put(name, args[i + 1]);
        }
    }

    String text(String name) {
        String value = values.get(name);
        if (value == null) throw new IllegalArgumentException("--" + name + " is missing");
        return value;
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    int number(String name, int otherwise) {
        return values.containsKey(name) ? Integer.parseInt(values.get(name)) : otherwise;
    }

    void applySettings(Properties properties) {
        for (String setting : settings) {
            int equals = setting.indexOf('=');
            properties.put(setting.substring(0, equals), setting.substring(equals + 1));
        }
    }
}
