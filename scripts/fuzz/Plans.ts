/** Generates valid and invalid plans for the documented routes. */
import fc from "fast-check"
import type { Route } from "./Document.ts"
import { encoded, hostileNumbers, hostileTexts, literals, placesIn, texts } from "./Hostile.ts"
import type { Coding, CredentialName, Framing, Plan } from "./Plan.ts"
import { valuesOf } from "./Schema.ts"
import type { Schemas } from "./Schema.ts"

const often = <T>(weight: number, usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: other })

const id = (name: string) => `⟦${name}⟧`

/** For each parameter name, the placeholders of a world that pass validation. */
const known: Readonly<Record<string, ReadonlyArray<string>>> = {
  model: [
    "auto",
    "sandbox-small",
    "sandbox-large",
    "sandbox-failover",
    "sandbox-embedding",
    "sandbox-rerank",
    "sandbox-video",
    "sandbox-image",
    "sandbox-image-to-video",
    "sandbox-video-open",
    "tts-1",
    "whisper-1",
    "jev-latest",
    "nothing"
  ],
  tenant_id: [id("tenant_id"), id("team_id"), id("other_tenant_id")],
  account_id: [id("account_id"), id("other_account_id")],
  application_id: [id("application_id")],
  transfer_id: [id("transfer_id"), id("other_transfer_id")],
  token: [id("invite_token"), id("refresh_token")],
  request_id: [id("media_request_id"), id("image_request_id")],
  usage_id: [id("usage_id")],
  invite_id: [id("invite_id")],
  id: [id("notification_id"), "sandbox-small"],
  client_id: [id("client_id"), id("oauth_client_id")],
  service_client_id: [id("service_client_id")],
  redirect_uri: [id("redirect_uri")],
  id_token: [id("id_token")],
  refresh_token: [id("refresh_token")],
  payment_method_id: [id("payment_method_id"), "pm_card_declined"],
  billing_account_id: [id("billing_account_id")],
  provider: ["vendor", "openai", "google", "microsoft"],
  email: ["grace@example.com", "bob@example.com"],
  recipient_email: ["grace@example.com", "bob@example.com"],
  grant_type: ["refresh_token", "authorization_code", "urn:ietf:params:oauth:grant-type:device_code"]
}

const knownOf = (name: string): fc.Arbitrary<string> | undefined =>
  known[name] === undefined ? undefined : fc.constantFrom(...known[name])

/** Makes the operator's routes act on a separate user, whom no other request needs. */
const knownIn =
  ({ path }: Route) =>
  (name: string): fc.Arbitrary<string> | undefined =>
    path.startsWith("/v1/operator/") && (name === "tenant_id" || name === "account_id")
      ? fc.constantFrom(id(`victim_${name}`), id(`victim_${name}`), "x")
      : knownOf(name)

// ---- targets ------------------------------------------------------------------------------------------------------------------

const segment = (route: Route, name: string): fc.Arbitrary<string> => {
  const own = knownIn(route)(name)
  const strange = fc.oneof(
    encoded,
    hostileTexts.map((text) => escape(text).slice(0, 500)),
    fc.constant("x")
  )
  return own === undefined ? strange : often(6, own, strange)
}

const escape = (text: string): string => {
  try {
    return encodeURIComponent(text)
  } catch {
    return "%ED%A0%80"
  }
}

const spelled = (path: string): fc.Arbitrary<string> =>
  fc.constantFrom(
    `${path}/`,
    `/${path}`,
    path.replace(/(?<=.)\//, "//"),
    path.toUpperCase(),
    path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
    path.replaceAll("/", "%2F"),
    `/x/..${path}`,
    `/./${path}`,
    `http://elsewhere.example${path}`,
    `${path}#a`,
    `${path};a=b`,
    `${path}\\`,
    `${path}%00`,
    path.slice(1),
    `${path} x`,
    `${path}${"/a".repeat(3_000)}`,
    "*",
    ""
  )

const pathsOf = (route: Route): fc.Arbitrary<string> => {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return fc.tuple(...names.map((name) => segment(route, name))).chain((values) => {
    const path = names.reduce((at, name, index) => at.replace(`{${name}}`, () => values[index]!), route.path)
    return often(40, fc.constant(path), spelled(path))
  })
}

const queryValue = (
  schemas: Schemas,
  { example, name, schema }: Route["parameters"][number],
  route: Route
): fc.Arbitrary<string> => {
  const usual = valuesOf(schemas, schema, () => undefined).map((value) => escape(String(value)).slice(0, 2_000))
  const good = example === undefined ? [] : [fc.constant(String(example).replace(/^\{(\w+)\}$/, "⟦$1⟧"))]
  const own = knownIn(route)(name)
  return fc.oneof(
    usual,
    encoded,
    ...good,
    ...good,
    ...(own === undefined ? [] : [own]),
    fc.constantFrom("1", "200", "true", "2026-01-31", "daily")
  )
}

const queriesOf = (schemas: Schemas, route: Route): fc.Arbitrary<string> => {
  const own = route.parameters.filter((one) => one.in === "query")
  const pair = own.map((one) =>
    fc.option(
      queryValue(schemas, one, route).map((value) => `${escape(one.name)}=${value}`),
      { nil: undefined, freq: 3 }
    )
  )
  const more = fc.oneof(
    { weight: 20, arbitrary: fc.constant([] as Array<string>) },
    ...own.map((one) => queryValue(schemas, one, route).map((value) => [`${one.name}=${value}`])),
    fc.constantFrom(
      ["="],
      ["&&"],
      ["a[]=1", "a[]=2"],
      ["%ff=%ff"],
      ["?"],
      Array.from({ length: 2_000 }, (_, index) => `a${index}=1`)
    )
  )
  return fc.tuple(fc.tuple(...pair), more).map(([pairs, others]) => {
    const all = [...pairs.filter((one) => one !== undefined), ...others]
    return all.length === 0 ? "" : `?${all.join("&")}`
  })
}

// ---- headers --------------------------------------------------------------------------------------------------------------------

type Header = readonly [name: string, value: string]

const strangeHeaders: fc.Arbitrary<ReadonlyArray<Header>> = fc.constantFrom<ReadonlyArray<Header>>(
  [["expect", "100-continue"]],
  [["expect", "the impossible"]],
  [["connection", "close"]],
  [
    ["connection", "upgrade"],
    ["upgrade", "websocket"],
    ["sec-websocket-key", "x"]
  ],
  [
    ["upgrade", "h2c"],
    ["http2-settings", "AAMAAABkAAQAAP__"]
  ],
  [["x-big", "y".repeat(9_000)]],
  [["x-big", "y".repeat(40_000)]],
  Array.from({ length: 300 }, (_, index): Header => [`x-${index}`, "y"]),
  Array.from({ length: 3_000 }, (_, index): Header => [`x-${index}`, "y"]),
  [["x-odd", "\u00e9\u0000"]],
  [["x-odd", "a\r\n b"]],
  [["x odd", "a"]],
  [["", "a"]],
  [["accept", "text/html;q=0.1, */*;q=2, \u00ff"]],
  [["accept-encoding", "gzip, br, zstd;q=9"]],
  [["range", "bytes=0-1,5-"]],
  [["if-none-match", "*"]],
  [["origin", "null"]],
  [
    ["origin", "http://evil.example"],
    ["cookie", "__Host-console=%%%; a=b; __Host-console=x"]
  ],
  [["cookie", "x".repeat(8_000)]],
  [["traceparent", "00-00000000000000000000000000000000-0000000000000000-ff"]],
  [
    ["traceparent", "junk"],
    ["b3", "1-2-3"]
  ],
  [["x-forwarded-for", "1.2.3.4, [::1], x"]],
  [["x-http-method-override", "DELETE"]],
  [["last-event-id", "999999999999999999999"]],
  [["last-event-id", "-1"]],
  [
    ["authorization", "Bearer x"],
    ["authorization", "Basic Og=="]
  ],
  [["x-api-key", "x"]],
  [
    ["host", "elsewhere.example"],
    ["host", "other"]
  ],
  [
    ["anthropic-version", "1"],
    ["anthropic-beta", "x,y"]
  ],
  [
    ["content-type", "text/plain"],
    ["content-type", "application/json"]
  ],
  [
    ["date", "x"],
    ["te", "trailers"],
    ["trailer", "x"]
  ]
)

const keys = fc.oneof(
  fc.integer({ min: 0, max: 200 }).map((number) => `fuzz-key-${String(number).padStart(16, "0")}`),
  fc.integer({ min: 0, max: 1e9 }).map((number) => `fuzz-fresh-${String(number).padStart(16, "0")}`),
  fc.constantFrom("short", "x".repeat(129), "with space 0123456789", "\u00e9".repeat(20), "")
)

const headersOf = (route: Route, type: string | undefined): fc.Arbitrary<ReadonlyArray<Header>> => {
  const isKeyed = route.parameters.some(({ name }) => name.toLowerCase() === "idempotency-key")
  const types = fc.constantFrom(
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/json; charset=utf-16",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "text/csv",
    "application/octet-stream",
    "a/b/c",
    ""
  )
  const content: fc.Arbitrary<ReadonlyArray<Header>> =
    type === undefined
      ? fc.constant([])
      : often(
          12,
          fc.constant([["content-type", type]] as const),
          types.map((other) => [["content-type", other]] as const)
        )
  const key: fc.Arbitrary<ReadonlyArray<Header>> = isKeyed
    ? fc
        .option(
          keys.map((value) => ["idempotency-key", value] as const),
          { nil: undefined }
        )
        .map((header) => (header === undefined ? [] : [header]))
    : fc.constant([])
  const strange = often<ReadonlyArray<Header>>(8, fc.constant([]), strangeHeaders)
  const host = often<ReadonlyArray<Header>>(40, fc.constant([["host", "127.0.0.1"]]), fc.constant([]))
  return fc.tuple(host, content, key, strange).map((all) => all.flat())
}

// ---- bodies ---------------------------------------------------------------------------------------------------------------------

const filled = (value: unknown): unknown => {
  if (typeof value === "string") return value.replace(/^\{(\w+)\}$/, "⟦$1⟧")
  if (Array.isArray(value)) return value.map(filled)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, filled(inner)]))
}

/** Marks a value that must be written as a literal, because `JSON.stringify` cannot write invalid JSON. */
const mark = "\u27e8literal\u27e9"

const changed = (json: unknown, way: ReadonlyArray<string>, value: unknown): unknown => {
  if (way.length === 0) return value
  const copy = structuredClone(json) as Record<string, unknown>
  let at = copy
  for (const name of way.slice(0, -1)) at = at[name] as Record<string, unknown>
  if (value === undefined && Array.isArray(at)) at.splice(Number(way.at(-1)), 1)
  else if (value === undefined) delete at[way.at(-1)!]
  else at[way.at(-1)!] = value
  return copy
}

const hostile = fc.oneof(
  hostileNumbers,
  hostileTexts,
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(undefined, null, [], {}, true),
  texts
)

/** Generates JSON with one value changed, replaced with a literal, or given a duplicate name. */
const mutated = (json: unknown): fc.Arbitrary<string> => {
  const place = fc.constantFrom(...placesIn(json))
  const twice = hostile.map((value) => JSON.stringify(value) ?? "null")
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(place, hostile).map(([way, value]) => JSON.stringify(changed(json, way, value)) ?? "")
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(place, literals)
        .map(([way, literal]) => JSON.stringify(changed(json, way, mark))!.replace(`"${mark}"`, () => literal))
    },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.nat(), twice).map(([index, value]) => {
        const text = JSON.stringify(json)
        const names = Object.keys((typeof json === "object" && json) || {})
        return names.length === 0
          ? text
          : text.replace(/^\{/, () => `{${JSON.stringify(names[index % names.length])}:${value},`)
      })
    }
  )
}

const oddBodies = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "null",
    "[]",
    '""',
    "0",
    "{",
    "{}",
    '{"',
    "{}{}",
    "\ufeff{}",
    "\u0000",
    "[".repeat(100_000),
    `{"a":${"9".repeat(100_000)}}`,
    `"${"\\u0000".repeat(20_000)}"`,
    "a=b&c=d",
    "<a/>",
    "--x--"
  ),
  fc.string({ unit: "binary", maxLength: 100 }),
  fc.jsonValue().map((value) => JSON.stringify(value))
)

const jsonBodies = (schemas: Schemas, route: Route): fc.Arbitrary<string> => {
  const { example, schema } = route.body!
  const valid = valuesOf(schemas, schema, knownIn(route))
  const usual = example === undefined ? [] : [filled(example)]
  return fc.oneof(
    { weight: 3, arbitrary: valid.map((value) => JSON.stringify(value)) },
    { weight: 3, arbitrary: valid.chain(mutated) },
    ...usual.flatMap((value) => [
      { weight: 2, arbitrary: fc.constant(JSON.stringify(value)) },
      { weight: 5, arbitrary: mutated(value) }
    ]),
    { weight: 1, arbitrary: oddBodies }
  )
}

/** A second of silence. It contains no bytes above 0x7f, because they would be encoded as UTF-8. */
const wave = `RIFF\0\0\0\0WAVEfmt ${"\0".repeat(2_000)}`

const boundary = "fuzz-boundary"

const part = (name: string, content: string, more = "") =>
  `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`

const forms = (route: Route): fc.Arbitrary<string> => {
  const file = route.path.endsWith("/images/edits") ? "image" : "file"
  const content = fc.oneof(fc.constantFrom(wave, "", "x", "RIFF"), fc.string({ maxLength: 50 }))
  const name = fc.constantFrom(
    file,
    file,
    "model",
    "prompt",
    "response_format",
    "language",
    "temperature",
    "n",
    "size",
    "provider",
    "timestamp_granularities[]",
    "stream",
    "",
    "a\u0000",
    "__proto__"
  )
  const value = fc.oneof(
    fc.constantFrom(
      "whisper-1",
      "json",
      "srt",
      "vtt",
      "verbose_json",
      "text",
      "1",
      "0",
      "-1",
      "1e9",
      "1024x1024",
      "vendor",
      "true"
    ),
    hostileTexts
  )
  const tail = fc.constantFrom(
    "",
    '; filename="a.wav"',
    '; filename="../../a"',
    "; filename*=UTF-8''%ff",
    '; filename="a\r\ncontent-type: audio/wav'
  )
  const field = fc.tuple(name, fc.oneof(value, content), tail).map(([one, text, more]) => part(one, text, more))
  const due = content.map((text) => part(file, text, '; filename="a.wav"\r\ncontent-type: audio/wav'))
  const end = often(
    10,
    fc.constant(`--${boundary}--\r\n`),
    fc.constantFrom("", `--${boundary}`, `--${boundary}--`, "--other--\r\n")
  )
  return fc
    .tuple(fc.option(due, { nil: "", freq: 6 }), fc.array(field, { maxLength: 5 }), end)
    .map(([first, fields, last]) => `${first}${fields.join("")}${last}`)
}

const csv = fc.oneof(
  fc.constantFrom(
    "date,model,cost\n2026-03-01,sandbox-small,0.25\n",
    "date,model,cost",
    "a;b\n1;2",
    "\n\n",
    "date,model,cost\n,,\n",
    'date,model,cost\n"2026',
    "date,date,cost\n1,2,3"
  ),
  fc
    .array(fc.array(fc.oneof(texts, hostileTexts), { maxLength: 4 }), { maxLength: 4 })
    .map((rows) => rows.map((row) => row.join(",")).join("\n"))
)

const bodiesOf = (schemas: Schemas, route: Route): fc.Arbitrary<string> => {
  if (route.body === undefined) return oddBodies
  if (route.body.type === "multipart/form-data") return often(10, forms(route), oddBodies)
  return route.body.type === "text/csv" ? csv : jsonBodies(schemas, route)
}

// ---- credentials and delivery ---------------------------------------------------------------------------------------------------

const schemeCredentials: Readonly<Record<string, ReadonlyArray<CredentialName>>> = {
  user_token: ["token"],
  user_token_or_api_key: ["key", "token"],
  x_api_key: ["key as x-api-key"],
  api_key: ["key"],
  client_token: ["client token"],
  operator_token: ["operator's token"]
}

const everyCredential: ReadonlyArray<CredentialName> = [
  "none",
  "key",
  "key as x-api-key",
  "token",
  "other person's token",
  "operator's token",
  "expired token",
  "application's token",
  "client token",
  "wrong"
]

const credentialsOf = ({ schemes }: Route): fc.Arbitrary<CredentialName> => {
  const due = schemes.flatMap((scheme) => schemeCredentials[scheme] ?? [])
  const usual = due.length === 0 ? fc.constant<CredentialName>("none") : fc.constantFrom(...due)
  return often(4, usual, fc.constantFrom(...everyCredential))
}

const wrongs = fc.constantFrom(
  "authorization: Bearer",
  "authorization: Bearer ",
  "authorization: bearer x",
  "authorization:",
  "authorization: Basic dTpw",
  `authorization: Bearer svc-prod-${"0".repeat(64)}`,
  `authorization: Bearer svc-prod-${"0".repeat(63)}`,
  "authorization: Bearer svc-prod-x-y-z",
  "authorization: Bearer other-prod-0",
  "authorization: Bearer a.b.c",
  "authorization: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhY2NfMSJ9.",
  "authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA",
  `authorization: Bearer ${"x".repeat(9_000)}`,
  "authorization: Bearer \u00e9\u0007",
  "authorization: Bearer %00",
  "x-api-key: ",
  "x-api-key: \u00ff"
)

const framings = (hasBody: boolean): fc.Arbitrary<Framing> =>
  often<Framing>(
    30,
    hasBody ? fc.constantFrom<Framing>("length", "length", "length", "chunked") : fc.constant<Framing>("none"),
    fc.constantFrom<Framing>(
      "length",
      "none",
      "length too short",
      "length too long",
      "length twice",
      "length negative",
      "length huge",
      "length no number",
      "both",
      "chunked, cut",
      "chunked, bad size",
      "chunked, long extension",
      "chunked, twice",
      "encoding unknown"
    )
  )

const codings = often<Coding>(
  25,
  fc.constant("none"),
  fc.constantFrom<Coding>("gzip", "br", "deflate", "gzip, cut", "gzip, untrue", "unknown", "twice")
)

const changes = (weight: number) =>
  often<Plan["bytes"]>(
    weight,
    fc.constant([]),
    fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 255 })), {
      minLength: 1,
      maxLength: 4
    })
  )

const typeOf = ({ body }: Route): string | undefined =>
  body === undefined
    ? undefined
    : body.type === "multipart/form-data"
      ? `${body.type}; boundary=${boundary}`
      : body.type

/** Generates requests for a route. With `patient`, some clients of incomplete requests wait until the service times out. */
export const plansOf = (schemas: Schemas, route: Route, patient: boolean): fc.Arbitrary<Plan> => {
  const hasBody = route.body !== undefined
  const body = hasBody
    ? often(
        20,
        bodiesOf(schemas, route).map((text): string | undefined => text),
        fc.constant(undefined)
      )
    : often<string | undefined>(30, fc.constant(undefined), oddBodies)
  return fc
    .record({
      route: fc.constant(route.name),
      credential: credentialsOf(route),
      wrong: wrongs,
      method: often(
        60,
        fc.constant(route.method),
        fc.constantFrom(
          "HEAD",
          "OPTIONS",
          "PUT",
          "DELETE",
          "PATCH",
          "TRACE",
          "CONNECT",
          "get",
          "BREW",
          "PROPFIND",
          "PRI"
        )
      ),
      target: fc.tuple(pathsOf(route), queriesOf(schemas, route)).map((parts) => parts.join("")),
      version: often(200, fc.constant("HTTP/1.1"), fc.constantFrom("HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "ICY", "")),
      headers: headersOf(route, typeOf(route)),
      body,
      bodyBytes: changes(20),
      coding: hasBody ? codings : fc.constant<Coding>("none"),
      framing: framings(hasBody),
      bytes: changes(40),
      times: often(30, fc.constant(1), fc.integer({ min: 2, max: 5 })),
      pieces: often(12, fc.constant(1), fc.integer({ min: 2, max: 12 })),
      pause_ms: often(20, fc.constant(0), fc.integer({ min: 1, max: 20 })),
      end: fc.oneof(
        { weight: 60, arbitrary: fc.constant<Plan["end"]>("wait") },
        { weight: 2, arbitrary: fc.constant<Plan["end"]>("half") },
        { weight: 2, arbitrary: fc.constant<Plan["end"]>("cut") }
      ),
      upTo: often(60, fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
      from: fc.integer({ min: 1, max: 60_000 }),
      waits: often(40, fc.constant(false), fc.constant(patient))
    })
    .map(({ waits, ...plan }) => {
      const sent: Plan = { ...plan, framing: plan.body === undefined ? "none" : plan.framing }
      // The service would wait for the remainder of an incomplete request, so most clients close their side instead.
      const isWhole = sent.upTo === 1 && sent.bytes.length === 0 && !/too long|huge|cut|encoding/.test(sent.framing)
      return isWhole || waits || sent.end !== "wait" ? sent : { ...sent, end: "half" }
    })
}
