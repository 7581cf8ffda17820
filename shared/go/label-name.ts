/** Tells whether a text is a Kubernetes name (label key or value, DNS label, port name, …), and if not, why. */

const QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE = `(${QUALIFIED})?`;
const DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN = `${DNS_LABEL}(\\.${DNS_LABEL})*`;
const ENV_NAME = "[-._a-zA-Z][-._a-zA-Z0-9]*";
const CONFIG_KEY = "[-._a-zA-Z0-9]+";
const HEADER_NAME = "[-A-Za-z0-9]+";
const PERCENT = "[0-9]+%";

const whole = (pattern: string): RegExp => new RegExp(`^${pattern}$`);
const IS_QUALIFIED = whole(QUALIFIED);
const IS_LABEL_VALUE = whole(LABEL_VALUE);
const IS_DNS_LABEL = whole(DNS_LABEL);
const IS_DNS_SUBDOMAIN = whole(DNS_SUBDOMAIN);
const IS_ENV_NAME = whole(ENV_NAME);
const IS_CONFIG_KEY = whole(CONFIG_KEY);
const IS_HEADER_NAME = whole(HEADER_NAME);
const IS_PERCENT = whole(PERCENT);

const DNS_LABEL_LIMIT = 63;
const DNS_SUBDOMAIN_LIMIT = 253;
const PORT_NAME_LIMIT = 15;

const encoder = new TextEncoder();

/** Kubernetes measures names in bytes. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The text of apimachinery's RegexError. */
export function patternError(message: string, pattern: string, ...examples: readonly string[]): string {
  const quoted = examples.map((example) => `'${example}', `).join(" or ");
  return `${message} (e.g. ${quoted}regex used for validation is '${pattern}')`;
}

function tooLongError(text: string, limit: number): readonly string[] {
  return byteLength(text) > limit ? [`must be no more than ${limit} characters`] : [];
}

const QUALIFIED_ERROR = patternError(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  QUALIFIED,
  "MyName",
  "my.name",
  "123-abc",
);

function namePartErrors(name: string): readonly string[] {
  const length = name === "" ? ["must be non-empty"] : tooLongError(name, DNS_LABEL_LIMIT);
  const errors = IS_QUALIFIED.test(name) ? length : [...length, QUALIFIED_ERROR];
  return errors.map((error) => `name part ${error}`);
}

function prefixErrors(prefix: string): readonly string[] {
  const errors = prefix === "" ? ["must be non-empty"] : dnsSubdomainErrors(prefix);
  return errors.map((error) => `prefix part ${error}`);
}

/** A label or annotation key: `name` or `dns.prefix/name`. */
export function qualifiedNameErrors(text: string): readonly string[] {
  const parts = text.split("/");
  const [first = "", second] = parts;
  if (parts.length > 2) {
    return [
      `a qualified name ${QUALIFIED_ERROR} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  return second === undefined ? namePartErrors(first) : [...prefixErrors(first), ...namePartErrors(second)];
}

const LABEL_VALUE_ERROR = patternError(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  LABEL_VALUE,
  "MyValue",
  "my_value",
  "12345",
);

export function labelValueErrors(text: string): readonly string[] {
  const length = tooLongError(text, DNS_LABEL_LIMIT);
  return IS_LABEL_VALUE.test(text) ? length : [...length, LABEL_VALUE_ERROR];
}

const DNS_LABEL_ERROR = patternError(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  DNS_LABEL,
  "my-name",
  "123-abc",
);

export function dnsLabelErrors(text: string): readonly string[] {
  const length = tooLongError(text, DNS_LABEL_LIMIT);
  if (IS_DNS_LABEL.test(text)) return length;
  return [...length, IS_DNS_SUBDOMAIN.test(text) ? "must not contain dots" : DNS_LABEL_ERROR];
}

const DNS_SUBDOMAIN_ERROR = patternError(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  DNS_SUBDOMAIN,
  "example.com",
);

export function dnsSubdomainErrors(text: string): readonly string[] {
  const length = tooLongError(text, DNS_SUBDOMAIN_LIMIT);
  return IS_DNS_SUBDOMAIN.test(text) ? length : [...length, DNS_SUBDOMAIN_ERROR];
}

function dotPrefixErrors(text: string): readonly string[] {
  if (text === "." || text === "..") return [`must not be '${text}'`];
  return text.startsWith("..") ? ["must not start with '..'"] : [];
}

const ENV_NAME_ERROR = patternError(
  "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
  ENV_NAME,
  "my.env-name",
  "MY_ENV.NAME",
  "MyEnvName1",
);

export function envNameErrors(text: string): readonly string[] {
  return [...(IS_ENV_NAME.test(text) ? [] : [ENV_NAME_ERROR]), ...dotPrefixErrors(text)];
}

const CONFIG_KEY_ERROR = patternError(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  CONFIG_KEY,
  "key.name",
  "KEY_NAME",
  "key-name",
);

/** A key of a ConfigMap or Secret. */
export function configKeyErrors(text: string): readonly string[] {
  const pattern = IS_CONFIG_KEY.test(text) ? [] : [CONFIG_KEY_ERROR];
  return [...tooLongError(text, DNS_SUBDOMAIN_LIMIT), ...pattern, ...dotPrefixErrors(text)];
}

const HEADER_NAME_ERROR = patternError(
  "a valid HTTP header must consist of alphanumeric characters or '-'",
  HEADER_NAME,
  "X-Header-Name",
);

export function headerNameErrors(text: string): readonly string[] {
  return IS_HEADER_NAME.test(text) ? [] : [HEADER_NAME_ERROR];
}

const PERCENT_ERROR = patternError(
  "a valid percent string must be a numeric string followed by an ending '%'",
  PERCENT,
  "1%",
  "93%",
);

export function percentErrors(text: string): readonly string[] {
  return IS_PERCENT.test(text) ? [] : [PERCENT_ERROR];
}

export function portNameErrors(text: string): readonly string[] {
  const rules: readonly (readonly [boolean, string])[] = [
    [/^[-a-z0-9]+$/.test(text), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"],
    [/[a-z]/.test(text), "must contain at least one letter (a-z)"],
    [!text.includes("--"), "must not contain consecutive hyphens"],
    [!(text.startsWith("-") || text.endsWith("-")), "must not begin or end with a hyphen"],
  ];
  return [...tooLongError(text, PORT_NAME_LIMIT), ...rules.flatMap(([holds, error]) => (holds ? [] : [error]))];
}

export function rangeErrors(value: number, low: number, high: number): readonly string[] {
  return value >= low && value <= high ? [] : [`must be between ${low} and ${high}, inclusive`];
}
