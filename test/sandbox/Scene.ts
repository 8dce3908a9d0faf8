/** A sandbox without a service, for one test: the outside world and its levers over HTTP. */
import { Effect, Exit, Scope } from "effect"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads answers of any shape
  readonly body: any
}

export interface Scene extends Sandbox.Sandbox {
  readonly close: () => Promise<void>
  /** Calls a path of the sandbox, or a complete address. */
  readonly call: (path: string, json?: unknown, init?: RequestInit) => Promise<Answer>
}

export const open = async (settings: Sandbox.Settings = {}): Promise<Scene> => {
  const scope = Effect.runSync(Scope.make())
  const sandbox = await Effect.runPromise(Scope.extend(Sandbox.make(settings), scope))
  return {
    ...sandbox,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
    call: async (path, json, init = {}) => {
      const response = await fetch(path.startsWith("http") ? path : sandbox.url + path, {
        method: json === undefined ? "GET" : "POST",
        ...(json !== undefined && { body: JSON.stringify(json) }),
        ...init,
        headers: { authorization: "Bearer key", "content-type": "application/json", ...init.headers }
      })
      const text = await response.text()
      let body: unknown
      try {
        body = JSON.parse(text)
      } catch {
        body = undefined
      }
      return { status: response.status, headers: response.headers, text, body }
    }
  }
}

export const freshFolder = (): string => mkdtempSync(join(tmpdir(), "tollgate-sandbox-"))

/** Polls until a condition holds. */
export const eventually = async <A>(look: () => Promise<A | undefined>): Promise<A> => {
  for (let i = 0; i < 500; i++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error("it did not come to that")
}
