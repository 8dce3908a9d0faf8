/**
 * Validates a rerank request and computes its bounds.
 *
 * Where the specification is silent:
 * - Requests and responses use the format of Cohere and Jina. Each document is a string or an object with a `text`.
 * - Tokens are bounded by the bytes: one token for each byte of the documents, plus the bytes of the query for every document. Searches are bounded
 *   by the number of documents divided by `documents_per_search`, where a long document counts as several. The call reserves both bounds.
 * - The service accepts a reported search count up to its bound. It accepts a reported token count up to `max_input_tokens` per document, because
 *   upstreams may add tokens. If a document's bound is higher, it applies instead, because upstreams may split the document. Token counts are read
 *   from `usage.prompt_tokens`, `usage.total_tokens` or `meta.billed_units.input_tokens`, and search counts from `meta.billed_units.search_units`.
 * - `return_documents` also works with upstreams that do not support it.
 */
import { Either, Schema } from "effect"
import { billedFieldError } from "../embeddings/Embedding.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import { UnknownModel } from "../../upstream/models/Provider.ts"
import { tokensEstimated } from "../../upstream/models/Reported.ts"
import type { Refusal } from "../threads/Task.ts"
import type { RerankModel } from "./Settings.ts"

const Document = Schema.Union(Schema.String, Schema.Struct({ text: Schema.String }))

export const RerankRequest = Schema.Struct({
  model: Schema.String,
  query: Schema.String,
  documents: Schema.Array(Document),
  /** The number of documents to return, best first. By default, all are returned. */
  top_n: Schema.optional(Schema.NullOr(Schema.Int)),
  return_documents: Schema.optional(Schema.NullOr(Schema.Boolean))
}).annotations({ identifier: "RerankRequest" })
export interface RerankRequest extends Schema.Schema.Type<typeof RerankRequest> {
  readonly [field: string]: unknown
}

export const RerankAnswer = Schema.Struct({
  /** The results, best first. */
  results: Schema.Array(
    Schema.Struct({
      /** The document's index in the request. */
      index: Schema.Int,
      relevance_score: Schema.Number,
      document: Schema.optional(Schema.Struct({ text: Schema.String }))
    })
  )
}).annotations({ identifier: "RerankAnswer" })

/** The quantities that determine a request's cost. */
export interface Amounts {
  readonly tokens: number
  readonly searches: number
}

/** A valid request with its model. */
export interface ValidRequest {
  readonly model: RerankModel
  readonly request: RerankRequest
  /** The documents' lengths, in bytes. */
  readonly lengths: Uint32Array
  /** The amounts to reserve. */
  readonly most: Amounts
  /** The maximum token count to accept from the upstream. */
  readonly context: number
  readonly estimate: Amounts
}

const refused = (field: string, rule: string) => Either.left(InvalidRequest.of(field, rule))

/** Facts derived from a request's long members. */
export interface RerankFacts {
  /** The query's length in bytes, or 0 if it is not a non-empty string. */
  readonly query: number
  /** The number of documents, or 0 if there is no array of them. */
  readonly documents: number
  /** The documents' lengths in bytes, up to the first invalid one. */
  readonly lengths: Uint32Array
  /** The error for a field that changes the vendor's bill, if there is one. */
  readonly billed: Refusal | undefined
}

const noFacts: RerankFacts = { query: 0, documents: 0, lengths: new Uint32Array(), billed: undefined }

export const factsOf = (request: unknown): RerankFacts => {
  if (!isObject(request)) return noFacts
  const { documents, query } = request
  const list: ReadonlyArray<unknown> = Array.isArray(documents) ? documents : []
  const wrong = list.findIndex((one) => typeof one !== "string" && !(isObject(one) && typeof one.text === "string"))
  return {
    query: typeof query === "string" ? Buffer.byteLength(query) : 0,
    documents: list.length,
    lengths: Uint32Array.from(wrong === -1 ? list : list.slice(0, wrong), bytesOf),
    billed: billedFieldError(request)
  }
}

/**
 * Validates a request and computes its bounds. `Left` holds the first violation. With `facts`, the request's long members may have placeholder values
 * of the same types.
 */
export const validate = (
  models: ReadonlyArray<RerankModel>,
  request: unknown,
  facts = factsOf(request)
): Either.Either<ValidRequest, InvalidRequest> => {
  if (!isObject(request)) return refused("", "must be a JSON object")
  const { model: name, return_documents = null, top_n = null } = request
  if (typeof name !== "string" || name === "") return refused("model", "must be a model's id")
  const model = models.find(({ id }) => id === name)
  if (model === undefined) {
    const ids = models.map(({ id }) => id)
    return Either.left(new UnknownModel(name, ids))
  }
  const broken = findViolation(model, facts)
  if (broken !== undefined) return refused(...broken)
  if (top_n !== null && !(Number.isInteger(top_n) && (top_n as number) >= 1)) {
    return refused("top_n", "must be a whole number of at least 1")
  }
  if (return_documents !== null && typeof return_documents !== "boolean") {
    return refused("return_documents", "must be true or false")
  }
  const { billed, lengths, query } = facts
  if (billed !== undefined) return Either.left(new InvalidRequest(billed))
  return Either.right({
    model,
    request: request as unknown as RerankRequest,
    lengths,
    most: amountsOf(model, query, lengths, (bytes) => bytes),
    context: contextOf(model, query, lengths),
    estimate: amountsOf(model, query, lengths, tokensEstimated)
  })
}

/** Returns the first constraint that the query or the documents violate, with its field, if any. */
const findViolation = (
  { documents_max }: RerankModel,
  { documents, lengths, query }: RerankFacts
): readonly [field: string, rule: string] | undefined => {
  if (query === 0) return ["query", "must be a non-empty string"]
  if (documents === 0) return ["documents", "must be a non-empty array of documents"]
  if (documents > documents_max) return ["documents", `must contain at most ${documents_max} documents`]
  const wrong = lengths.length
  return wrong === documents ? undefined : [`documents.${wrong}`, "must be a string, or an object with a string `text`"]
}

/** Counts a document's bytes. All members of an object count, because a vendor may read more than `text`. */
const bytesOf = (document: unknown): number =>
  Buffer.byteLength(typeof document === "string" ? document : JSON.stringify(document))

const contextOf = (
  { added_tokens_max, input_tokens_max }: RerankModel,
  query: number,
  documents: Uint32Array
): number => documents.reduce((sum, bytes) => sum + Math.max(query + bytes + added_tokens_max, input_tokens_max), 0)

const amountsOf = (
  { added_tokens_max, documents_per_search, tokens_per_document }: RerankModel,
  query: number,
  documents: Uint32Array,
  tokensIn: (bytes: number) => number
): Amounts => {
  let tokens = 0
  let counted = 0
  for (const bytes of documents) {
    const both = tokensIn(query) + tokensIn(bytes)
    tokens += both + added_tokens_max
    counted += Math.max(1, Math.ceil(both / tokens_per_document))
  }
  return { tokens, searches: Math.ceil(counted / documents_per_search) }
}

/** The typical response size per document, in bytes. */
const resultBytes = 100

/** Estimates the response size in bytes. A returned document is at most as long as the request's document. */
export const answerBytesOf = ({ lengths, request: { return_documents, top_n } }: ValidRequest): number => {
  const results = Math.min(top_n ?? lengths.length, lengths.length)
  const held = return_documents === true ? lengths.reduce((sum, bytes) => sum + bytes, 0) : 0
  return results * resultBytes + held
}

/** Returns a response's defect, for the log, or `undefined` if the response ranks the request's documents. */
export const faultIn =
  ({ lengths }: ValidRequest) =>
  ({ results }: Readonly<Record<string, unknown>>): string | undefined => {
    const isResult = (one: unknown) =>
      isObject(one) &&
      typeof one.relevance_score === "number" &&
      Number.isInteger(one.index) &&
      lengths[one.index as number] !== undefined
    // A repeated index would return the same document twice.
    const isOrder = (all: ReadonlyArray<{ readonly index: number }>) =>
      new Set(all.map(({ index }) => index)).size === all.length
    return Array.isArray(results) && results.every(isResult) && isOrder(results)
      ? undefined
      : "the response does not rank the request's documents"
  }

export const reportedAmounts = ({
  meta,
  usage
}: Readonly<Record<string, unknown>>): Readonly<Record<keyof Amounts, unknown>> => {
  const { prompt_tokens, total_tokens } = isObject(usage) ? usage : {}
  const { billed_units } = isObject(meta) ? meta : {}
  const { input_tokens, search_units } = isObject(billed_units) ? billed_units : {}
  return { tokens: prompt_tokens ?? total_tokens ?? input_tokens, searches: search_units }
}

type Results = ReadonlyArray<Readonly<Record<string, unknown>>>

/** The members of a response that may be long: the documents. */
export const longMembers: LongMembers = { names: new Set(["document"]), depth: 3 }

/** Returns whether the upstream omitted requested documents. */
export const isIncomplete = ({ request }: ValidRequest, { results }: Readonly<Record<string, unknown>>): boolean =>
  request.return_documents === true && !(results as Results).every(({ document }) => document !== undefined)

/** Adds the documents that the upstream omitted. */
export const withDocuments = (
  body: Readonly<Record<string, unknown>>,
  documents: ReadonlyArray<unknown>
): Record<string, unknown> => {
  const documentOf = (index: unknown) => {
    const document = documents[index as number]
    return typeof document === "string" ? { text: document } : document
  }
  const results = body.results as Results
  return { ...body, results: results.map((one) => ({ ...one, document: one.document ?? documentOf(one.index) })) }
}
