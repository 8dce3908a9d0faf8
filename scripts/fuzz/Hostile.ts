/** Values that often break programs: numbers, strings, and fragments of JSON, URLs and headers. */
import fc from "fast-check"

export const hostileNumbers = fc.constantFrom(
  0,
  -0,
  -1,
  1e-9,
  1e-10,
  0.1 + 0.2,
  2 ** 31,
  2 ** 31 - 1,
  2 ** 32,
  2 ** 53,
  2 ** 53 - 1,
  -(2 ** 63),
  2 ** 63,
  9_007_199.254740993,
  1e15,
  1e21,
  1e308,
  -1e308,
  5e-324
)

export const hostileTexts = fc.constantFrom(
  "",
  " ",
  "\0",
  "a\0b",
  "\ud800",
  "\udc00x",
  "\u202e\u200b\ufeff",
  "e\u0301".repeat(50),
  "\u{1F468}\u200d\u{1F469}\u200d\u{1F467}",
  "\u{10FFFF}\uFFFE",
  "İıſK",
  "\r\nx-injected: 1",
  "../../etc/passwd",
  "..%2f..%2f",
  "' OR 1=1 --",
  '"; DROP TABLE tollgate_accounts; --',
  "\u0024{jndi:ldap://127.0.0.1/a}",
  "__proto__",
  "constructor",
  "toString",
  "null",
  "undefined",
  "NaN",
  "-1",
  "1e999",
  "0x10",
  "9".repeat(400),
  "x".repeat(5_000),
  "%",
  "%s%n%x",
  "<script>alert(1)</script>",
  "data:image/png;base64,AAAA",
  "data:,",
  "http://127.0.0.1:1/",
  "file:///etc/passwd",
  "2026-02-30T25:61:61Z",
  "+275760-09-13T00:00:00.001Z",
  "9999999999999"
)

export const texts = fc.constantFrom("a", "one two three", "Ada", "sandbox-small", "2026-01-31", "true", "10", "user")

/** Literals that replace a JSON value. Some of them are not valid JSON. */
export const literals = fc.constantFrom(
  "1e999",
  "-1e999",
  "1E400",
  "-0",
  "0.1e-400",
  "123456789012345678901234567890",
  `0.${"3".repeat(400)}`,
  "9".repeat(400),
  "NaN",
  "Infinity",
  "0x10",
  "01",
  ".5",
  "5.",
  "+1",
  "undefined",
  "'a'",
  '"\\ud800"',
  '"\\u0000"',
  '"\\x41"',
  '"\t"',
  "[1,]",
  '{"a":1,}',
  "/*x*/1",
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{}}}',
  `${"[".repeat(200)}${"]".repeat(200)}`,
  `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
  `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`,
  `[${"0,".repeat(20_000)}0]`,
  "null",
  "true",
  "[]",
  "{}",
  '""'
)

/** URL-encoded path segments and query values. */
export const encoded = fc.constantFrom(
  "",
  ".",
  "..",
  "%2e%2e",
  "%2F",
  "%5c",
  "%00",
  "%0d%0a",
  "%",
  "%zz",
  "%C3",
  "%ED%A0%80",
  "%F4%90%80%80",
  "%E2%80%AE",
  "%25252e",
  "a+b",
  "a;b=c",
  "a,b",
  "-1",
  "0",
  "1e999",
  "9".repeat(60),
  "x".repeat(3_000),
  "null",
  "__proto__",
  "*",
  ":tenant_id",
  "{tenant_id}",
  "%7B%7D",
  "[]",
  "true",
  "2026-02-30",
  "275760-09-14",
  "-000001-01-01T00:00:00Z",
  "2026-01-31T00:00:00Z"
)

/** The maximum depth. Deeper values are skipped, because a hostile value may be nested deeper than the stack allows. */
const depthMax = 100

/** Returns the paths of all values in a JSON document, down to `depthMax`. */
export const placesIn = (value: unknown, way: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value !== "object" || value === null || way.length === depthMax
    ? [way]
    : [way, ...Object.entries(value).flatMap(([name, one]) => placesIn(one, [...way, name]))]
