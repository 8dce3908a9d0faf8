/**
 * A decision model with its own wire format. It receives typed questions about a state and picks the first label that occurs in the state. A token is
 * a word in any string of the request, so tests can predict every decision and its price.
 */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { isBody, json, parse, Refusal } from "./Outside.ts"
import type { Answer, Make, Received } from "./Outside.ts"

const model = "jev-1.13.0"

export const make: Make = ({ origin }) =>
  Effect.succeed({
    routes: [{ method: "POST", path: "/decisions/v1/systemone", answer: decide }],
    configuration: {
      upstreams: { "sandbox-decisions": { base_url: `${origin}/decisions`, api_key: "sandbox" } },
      decisions: { upstream: "sandbox-decisions", model, price: { input_usd_per_million: "0.042" } }
    }
  })

/** Builds a refusal that identifies the invalid field, as the real model does. */
const refuse = (field: string, message: string): Refusal =>
  new Refusal(json(422, { error: { type: "invalid_request", field, message: `${field}: ${message}` } }))

const decide = (received: Received): Answer => {
  if (!/^bearer +\S/i.test(received.headers.authorization ?? "")) {
    return json(401, { error: { type: "authentication_error", message: "no API key" } })
  }
  const body = parse(received.body)
  if (!isBody(body)) throw refuse("body", "an object")
  if (body["model"] !== model) throw refuse("model", `there is no model ${String(body["model"])}`)
  const { questions, state } = body
  if (state === undefined) throw refuse("state", "required")
  if (!isBody(questions) || Object.keys(questions).length === 0)
    throw refuse("questions", "must contain at least one question")
  const answers: Record<string, unknown> = {}
  for (const [name, question] of Object.entries(questions))
    answers[name] = answerTo(`questions.${name}`, question, state)
  return json(200, {
    id: `dec_${randomUUID().replaceAll("-", "")}`,
    model,
    answers,
    usage: { input_tokens: words(state) + words(questions), output_tokens: Object.keys(answers).length }
  })
}

/** Counts the words in every string and property name. Any other value except null counts as one word. */
const words = (value: unknown): number => {
  if (typeof value === "string") return value.split(/\s+/).filter((word) => word !== "").length
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + words(one), 0)
  if (isBody(value)) return Object.entries(value).reduce((sum, [key, one]) => sum + words(key) + words(one), 0)
  return value === null || value === undefined ? 0 : 1
}

const answerTo = (field: string, question: unknown, state: unknown): unknown => {
  if (!isBody(question)) throw refuse(field, "an object")
  const { criteria, instructions, type } = question
  if (type !== "choice" && type !== "noul" && type !== "score") throw refuse(`${field}.type`, "choice, noul or score")
  // Instructions can be a string, an object, an array, or null.
  if (instructions === "" || (typeof instructions !== "string" && typeof instructions !== "object")) {
    throw refuse(`${field}.instructions`, "required")
  }
  const text = JSON.stringify(state).toLowerCase()
  if (type === "noul") return { type, noul: text.includes("not ") ? 0.1 : 0.9 }
  if (type === "score") {
    if (!Array.isArray(criteria) || criteria.length < 2) throw refuse(`${field}.criteria`, "must contain at least two")
    return { type, score: 1, confidence: 0.9, legend: { ...criteria }, probabilities: { 0: 0.1, 1: 0.9 } }
  }
  if (!isBody(criteria) || Object.keys(criteria).length === 0) throw refuse(`${field}.criteria`, "required")
  const labels = Object.keys(criteria)
  const choice = labels.find((label) => text.includes(label.toLowerCase())) ?? labels[0]!
  const other = labels.length === 1 ? 0 : 0.2 / (labels.length - 1)
  const probabilities = Object.fromEntries(
    labels.map((label) => [label, label === choice ? (labels.length === 1 ? 1 : 0.8) : other])
  )
  return { type, choice, probabilities, confidence: probabilities[choice] }
}
