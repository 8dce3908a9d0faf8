/**
 * Calls and transfers that continue during a crash, and the check of the books afterwards. Each acknowledged change must exist exactly once. Other
 * changes must be complete or absent. No credit may stay reserved.
 */
import { expect } from "vitest"
import type { Answer, Person, Service } from "./Service.ts"

/** Runs a statement on the books and returns its rows. */
export type Ask = <A>(text: string) => Promise<ReadonlyArray<A>>

export class Load {
  readonly #ada: Person
  readonly #bob: Person
  readonly #key: string
  #calls = 0
  #sends = 0
  /** Each call has a unique length, which identifies its record. */
  readonly acknowledged = new Set<number>()
  readonly #sent = new Set<number>()
  /** The last acknowledged state, by Idempotency-Key. */
  readonly #transfers = new Map<string, { readonly id: string; readonly status: string }>()
  /** Counts unsuccessful responses, by `status code`. */
  readonly refusals = new Map<string, number>()
  /** Counts the requests to each service that got no response. */
  readonly cutOff = new Map<Service, number>()

  private constructor(ada: Person, bob: Person, key: string) {
    this.#ada = ada
    this.#bob = bob
    this.#key = key
  }

  static async on(service: Service): Promise<Load> {
    const ada = await service.signIn("ada@example.com")
    const key = await service.key(ada)
    const bob = await service.signIn("bob@example.com")
    await service.control("/credit", { tenant_id: ada.tenant_id, amount: 1_000, source: "purchase" })
    return new Load(ada, bob, key)
  }

  /** Returns the states of the acknowledged transfers. */
  moved(): ReadonlySet<string> {
    return new Set([...this.#transfers.values()].map(({ status }) => status))
  }

  /** Runs sixteen callers and four senders of credit until `isOver`. Each sends one request after another. */
  async run(service: Service, isOver: () => boolean): Promise<void> {
    const again = async (one: () => Promise<void>) => {
      while (!isOver()) {
        // A request without a response is not acknowledged.
        await one().catch(() => void this.cutOff.set(service, (this.cutOff.get(service) ?? 0) + 1))
      }
    }
    await Promise.all([
      ...Array.from({ length: 16 }, () => again(() => this.#call(service))),
      ...Array.from({ length: 4 }, () => again(() => this.#send(service)))
    ])
  }

  async #call(service: Service): Promise<void> {
    const words = ++this.#calls
    const stream = words % 3 === 0
    this.#sent.add(words)
    const content = Array.from({ length: words }, () => "w").join(" ")
    const answer = await service.call("/v1/chat/completions", {
      token: this.#key,
      json: { model: "sandbox-small", max_tokens: 1, stream, messages: [{ role: "user", content }] }
    })
    if (answer.status !== 200) return this.#refused(answer)
    // The end of a stream acknowledges the call.
    if (!stream || String(answer.body).includes("data: [DONE]")) this.acknowledged.add(words)
  }

  async #send(service: Service): Promise<void> {
    const path = `/v1/tenants/${this.#ada.tenant_id}/billing/transfers`
    const number = ++this.#sends
    const key = `crash-test-key-${number}`
    const made = await service.call(path, {
      token: this.#ada.token,
      headers: { "idempotency-key": key },
      json: { amount: 0.01, recipient_email: this.#bob.email, kind: "gift" }
    })
    // A tenant may create 1,000 transfers a day.
    if (made.body?.code === "too_many_transfers") return new Promise((resolve) => setTimeout(resolve, 20))
    // 200 means that the transfer already exists, because the response to its commit was lost.
    if (made.status !== 201 && made.status !== 200) return this.#refused(made)
    const { id } = made.body.result
    this.#transfers.set(key, { id, status: "pending" })
    const [token, method, where] =
      number % 2 === 0
        ? ([this.#ada.token, "DELETE", `${path}/${id}`] as const)
        : ([this.#bob.token, "POST", `/v1/transfers/${id}/accept`] as const)
    const answer = await service.call(where, { token, method })
    if (answer.status === 200) this.#transfers.set(key, { id, status: answer.body.result.status })
    else this.#refused(answer)
  }

  async #refused({ body, status }: Answer): Promise<void> {
    const name = `${status} ${body?.code}`
    this.refusals.set(name, (this.refusals.get(name) ?? 0) + 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }

  /** Compares the acknowledged changes with the books. All calls must be settled. */
  async compare(ask: Ask): Promise<void> {
    const charged = await ask<{ words: number; times: number }>(
      "SELECT prompt_tokens AS words, count(*) AS times FROM tollgate_usage_records WHERE success = 1 GROUP BY 1"
    )
    const found = await ask<{ key: string; id: string; status: string }>(
      "SELECT idempotency_key AS key, id, status FROM tollgate_transfers"
    )
    const states = new Map(found.map(({ id, key, status }) => [key, { id, status }]))
    for (const [key, { id, status }] of this.#transfers) {
      // A later change may exist without an acknowledgement.
      const state = states.get(key)
      expect([key, state?.id]).toEqual([key, id])
      if (status !== "pending") expect([key, state?.status]).toEqual([key, status])
    }
    expect(charged.filter(({ times }) => times !== 1)).toEqual([])
    const there = new Set(charged.map(({ words }) => words))
    expect([...this.acknowledged].filter((words) => !there.has(words))).toEqual([])
    expect([...there].filter((words) => !this.#sent.has(words))).toEqual([])
    expect(await open(ask)).toEqual({ calls: 0, amount: 0 })
  }
}

/** Returns the number of open reservations and their total. */
export const open = async (ask: Ask): Promise<{ readonly calls: number; readonly amount: number }> => {
  const [found] = await ask<{ calls: number; amount: number }>(
    `SELECT (SELECT count(*) FROM tollgate_ledger_reservations) AS calls,
      (SELECT sum(reserved) FROM tollgate_ledger_amounts) AS amount`
  )
  return found!
}

/** Waits up to a minute until no reservation is open, because the machine may be busy. */
export const settled = async (ask: Ask): Promise<void> => {
  for (let i = 0; i < 600 && (await open(ask)).calls > 0; i++) await new Promise((resolve) => setTimeout(resolve, 100))
}
