/** The state of the sandbox's payment processor, stored in the data folder, and its webhook events. */
import { createHmac, randomBytes } from "node:crypto"
import * as FileStore from "./FileStore.ts"
import type { Surroundings } from "./Outside.ts"

export const webhookSecret = "whsec_sandbox"
const fileName = "sandbox-payments.json"

export type Fields = Readonly<Record<string, string>>

export interface CheckoutSession {
  readonly id: string
  readonly mode: "payment" | "setup"
  readonly customer: string
  readonly cents: number
  readonly metadata: Fields
  readonly payment_metadata: Fields
  /** The target of the page's link. Files from earlier versions lack this field. */
  readonly back?: string | null
  payment_intent: string | null
}

export interface Event {
  readonly id: string
  readonly type: string
  readonly body: string
}

export interface Intent {
  readonly id: string
  readonly customer: string
  readonly created: number
  readonly amount: number
  amount_received: number
  /** `processing` means that the payment method takes days. */
  status: "succeeded" | "processing" | "requires_payment_method"
}

export interface Refund {
  readonly id: string
  readonly cents: number
  failed: boolean
}

export interface World {
  readonly customers: Record<string, { readonly metadata: Fields; methods: Array<string> }>
  readonly sessions: Record<string, CheckoutSession>
  readonly payments: Record<string, { readonly intent: Intent; readonly cents: number; refunds?: Array<Refund> }>
  /** Responses by idempotency key. */
  readonly keys: Record<string, { readonly status: number; readonly body: string }>
  readonly events: Array<Event>
  /** If true, events are listed but not delivered. */
  held?: boolean
}

export interface Processor {
  readonly world: World
  readonly origin: string
  readonly seconds: () => number
  readonly save: () => void
  /** The deployment's webhook address. `undefined` until the deployment runs. */
  webhook: string | undefined
}

export const open = ({ clock, data_dir, origin }: Surroundings): Processor => {
  const stored = FileStore.read(data_dir, fileName)
  const world: World =
    stored === undefined
      ? { customers: {}, sessions: {}, payments: {}, keys: {}, events: [] }
      : (JSON.parse(stored) as World)
  return {
    world,
    origin,
    seconds: () => Math.floor(clock.now() / 1_000),
    save: () => FileStore.write(data_dir, fileName, JSON.stringify(world)),
    webhook: undefined
  }
}

export const newId = (prefix: string): string => `${prefix}_${randomBytes(12).toString("hex")}`

/** Adds an event to the list without delivering it. */
export const addEvent = ({ seconds, world }: Processor, type: string, object: object): Event => {
  const id = newId("evt")
  const body = JSON.stringify({
    id,
    object: "event",
    api_version: "2025-01-01",
    created: seconds(),
    livemode: false,
    pending_webhooks: 1,
    request: null,
    type,
    data: { object }
  })
  const event = { id, type, body }
  world.events.push(event)
  return event
}

/** Posts an event to the webhook. Returns the status, or 0 if there is no response. */
export const deliver = async ({ seconds, webhook }: Processor, { body }: Pick<Event, "body">): Promise<number> => {
  if (webhook === undefined) return 0
  const timestamp = seconds()
  const signature = createHmac("sha256", webhookSecret).update(`${timestamp}.${body}`).digest("hex")
  const response = await fetch(webhook, {
    method: "POST",
    headers: { "content-type": "application/json", "stripe-signature": `t=${timestamp},v1=${signature}` },
    body
  }).catch(() => undefined)
  return response?.status ?? 0
}

/** Saves the world and delivers events in the background. Events that are held back are not delivered. */
export const deliverLater = (processor: Processor, events: ReadonlyArray<Event>): void => {
  processor.save()
  if (processor.world.held === true) return
  setImmediate(() => {
    for (const event of events) void deliver(processor, event)
  })
}

/** Saves the world and delivers events one by one. Returns the last event's status, or 0 while events are held back. */
export const deliverNow = async (processor: Processor, events: ReadonlyArray<Event>): Promise<number> => {
  processor.save()
  let status = 0
  if (processor.world.held !== true) for (const event of events) status = await deliver(processor, event)
  return status
}
