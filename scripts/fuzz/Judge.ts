/** Checks whether a response conforms to the service's document. */
import type { OpenApi, Route } from "./Document.ts"
import { isExact } from "./Plan.ts"
import type { Plan } from "./Plan.ts"
import { misfit } from "./Schema.ts"
import type { Answer, Received } from "./Wire.ts"

export interface Wrong {
  /** The fault kind. Each kind is reported only once. */
  readonly kind: string
  readonly what: string
}

/** Matches strings that appear only in internal errors. */
const insides =
  /\n\s+at [\w.<>[\] ]+ ?\(?[^)\n]*:\d+:\d+|node_modules|\bdist\/[\w-]+\.js|\bsrc\/\w+\/\w+\.ts|SQLITE_|SqlError|ECONNREFUSED|EACCES|ENOENT|\/tmp\/|Unexpected token .* in JSON|is not a function|Cannot read propert|undefined \(reading|"_tag":"HttpApiDecodeError"/

const codeOf = (answer: Answer): string => {
  try {
    const { code, error } = JSON.parse(answer.body.toString()) as {
      code?: string
      error?: { code?: string; type?: string }
    }
    return code ?? error?.code ?? error?.type ?? ""
  } catch {
    return ""
  }
}

const told = (answer: Answer): string => `${answer.status} ${answer.body.toString().slice(0, 400)}`

/** The statuses that a malformed or undocumented request may get. */
const general = new Set([204, 400, 404, 405, 408, 413, 415, 431])
/** The error codes that report a temporary shortage of resources. */
const momentary = new Set(["busy", "books_unavailable", "unavailable", "events_busy"])

const ofAnswer = ({ components }: OpenApi, route: Route, plan: Plan, answer: Answer): Wrong | undefined => {
  const { body, headers, status } = answer
  const type = headers.get("content-type")?.split(";", 1)[0] ?? ""
  const code = codeOf(answer)
  if (status >= 500 && !(status === 503 && momentary.has(code)))
    return { kind: `${route.name}: ${status} ${code}`, what: told(answer) }
  const text = type === "application/json" || type.startsWith("text/") ? body.toString() : ""
  if (plan.route !== "GET /docs" && type !== "text/html" && insides.test(text))
    return { kind: `${route.name}: an internal detail`, what: told(answer) }
  if (!headers.has("x-request-id")) return { kind: `${route.name}: no X-Request-Id`, what: told(answer) }
  if (status >= 400 && type !== "application/json" && type !== "text/html" && plan.method !== "HEAD")
    return { kind: `${route.name}: a refusal with content type ${type || "(none)"}`, what: told(answer) }
  if (!isExact(plan) || !isOf(route, plan)) return undefined
  if (general.has(status) && isRefusedBefore(plan)) return undefined
  const documented = route.responses[String(status)]
  if (documented === undefined)
    return route.documented
      ? { kind: `${route.name}: ${status} ${code} is not documented`, what: told(answer) }
      : undefined
  const content = documented.content?.[type]
  if (content === undefined)
    return documented.content === undefined || body.length === 0 || plan.method === "HEAD"
      ? undefined
      : { kind: `${route.name}: ${status} with content type ${type} is not documented`, what: told(answer) }
  if (type !== "application/json" || !answer.whole) return undefined
  const found = misfit(components.schemas, content.schema ?? {}, JSON.parse(text))
  return found === undefined
    ? undefined
    : {
        kind: `${route.name}: ${status} ${code} violates its schema`,
        what: `${found.slice(0, 600)}\n    ${told(answer)}`
      }
}

/** Returns whether a request's target matches the route's documented path. */
const isOf = ({ path }: Route, { target }: Plan): boolean => {
  const at = target.split("?", 1)[0]!
  const pattern = path.replaceAll(/[.]/g, "\\$&").replaceAll(/\{\w+\}/g, "(?!\\.{1,2}(?:/|$))[^/?#;\\\\]+")
  return new RegExp(`^${pattern}$`).test(at) && isDecodable(at)
}

const isDecodable = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Returns whether the service rejects the request before it reaches a route. */
const isRefusedBefore = ({ credential, headers, target, wrong }: Plan): boolean =>
  target.length > 8_000 ||
  (credential === "wrong" && (wrong.length > 8_000 || /[^\t\x20-\x7e\x80-\xff]/.test(wrong))) ||
  headers.some(
    ([name, value]) =>
      !/^[\w-]+$/.test(name) ||
      /[^\t\x20-\x7e\x80-\xff]/.test(value) ||
      value.length > 8_000 ||
      ["expect", "upgrade"].includes(name)
  ) ||
  headers.length > 100

/** Returns the first fault in the received responses, or `undefined` if there is none. */
export const wrongIn = (document: OpenApi, route: Route, plan: Plan, received: Received): Wrong | undefined => {
  if (received.end === "late")
    return { kind: `${route.name}: no end`, what: `no response and no close within ${received.millis.toFixed(0)} ms` }
  // The response to a malformed request contains a body, regardless of the method.
  const isTold = plan.method !== "HEAD" || isExact(plan)
  if (isTold && received.rest.length > 0 && !received.rest.toString("latin1", 0, 6).startsWith("HTTP/1"))
    return { kind: `${route.name}: no HTTP`, what: received.rest.toString("latin1", 0, 300) }
  for (const answer of received.answers) {
    const wrong = ofAnswer(document, route, plan, answer)
    if (wrong !== undefined) return wrong
  }
  const isAsked =
    isExact(plan) && plan.end === "wait" && plan.times === 1 && isOf(route, plan) && !isRefusedBefore(plan)
  if (isAsked && (received.answers.length === 0 || !received.answers[0]!.whole) && received.end === "closed")
    return {
      kind: `${route.name}: closed without a complete response`,
      what: received.answers.map(told).join("\n") || "nothing received"
    }
  return undefined
}
