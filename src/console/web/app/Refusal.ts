/** The errors of a request: an error response, an unreachable service, or an expired session. */

interface Problem {
  readonly error?: string
  readonly code?: string
  readonly details?: Readonly<Record<string, unknown>>
}

export class Refusal extends Error {
  readonly status: number
  readonly code: string | undefined
  readonly details: Readonly<Record<string, unknown>>
  readonly requestId: string | undefined

  constructor(status: number, problem: Problem, requestId: string | undefined) {
    super(problem.error ?? `HTTP ${status}`)
    this.name = "Refusal"
    this.status = status
    this.code = problem.code
    this.details = problem.details ?? {}
    this.requestId = requestId
  }

  /** The invalid request field, if the response names it. */
  get field(): string | undefined {
    return typeof this.details["field"] === "string" ? this.details["field"] : undefined
  }
}

/** The error of a request that got no response. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super("The service did not respond.", { cause })
    this.name = "Unreachable"
  }
}

/** The error of a request without a session. The user must sign in again. */
export class SignedOut extends Error {
  constructor() {
    super("The session has ended.")
    this.name = "SignedOut"
  }
}

const isProblem = (value: unknown): value is Problem => typeof value === "object" && value !== null

export const refusalOf = async (response: Response): Promise<Refusal> => {
  const body: unknown = await response.json().catch(() => undefined)
  return new Refusal(response.status, isProblem(body) ? body : {}, response.headers.get("x-request-id") ?? undefined)
}

/** Sends a request. Rejects with `Unreachable` if no response arrives, or with `AbortError` if the request is aborted. */
export const fetchResponse = async (input: string | Request, init?: RequestInit): Promise<Response> => {
  try {
    return await fetch(input, init)
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error
    throw new Unreachable(error)
  }
}
