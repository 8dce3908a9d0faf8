/**
 * Collects an upstream's whole response within the call's byte budget (`Room`). If the room does not suffice for a long response, the upstream is
 * paused. If room does not become free in time, the bytes are dropped. The outline still gives the cost.
 */
import { JsonOutline } from "../../kernel/JsonOutline.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import type { Room } from "../../kernel/Room.ts"
import { gistOf } from "../../protocols/conversation/Gist.ts"

/** The maximum length of a response that is parsed on the main thread. */
export const shortAnswerMax = 1024 * 1024
/** The maximum length of a response that is read for its outline. */
const outlinedMax = 1024 * 1024 * 1024

/** Why a response's bytes were dropped. */
export type Lost = "no_room" | "too_long"

export interface Taking {
  /** The maximum number of bytes to keep. A longer response is a failure. If it has an outline, only the outline is kept. */
  readonly limit: number
  /** Unlimited if absent. */
  readonly room?: Room | undefined
  /** The members that the outline of a long response leaves empty. If absent, there is no outline. */
  readonly long?: LongMembers | undefined
}

/** The source of a response. */
interface Flow {
  readonly pause: () => void
  readonly resume: () => void
}

export interface Taken {
  /** Empty if the bytes were dropped. */
  readonly body: Buffer
  /** The outline of a response that is long or was dropped. */
  readonly outline: JsonOutline | undefined
  readonly lost: Lost | undefined
}

/** The reporting members of a response, even if it is long, was dropped, or is not JSON. */
export const reportsIn = ({ body, outline }: Taken): Readonly<Record<string, unknown>> =>
  outline === undefined ? gistOf(body).object : (outline.value ?? gistOf(outline.bytes).object)

export class Intake {
  private readonly taking: Taking
  /** The bytes that the room held at the start. */
  private readonly before: number
  private chunks: Array<Buffer> = []
  /** The whole response in one buffer, once its room was claimed. Chunks plus a copy would need twice the room. */
  private all: Buffer | undefined
  private size = 0
  private outline: JsonOutline | undefined
  private lost: Lost | undefined
  private stopWaiting: (() => void) | undefined

  constructor(taking: Taking) {
    this.taking = taking
    this.before = taking.room?.held ?? 0
  }

  /** Takes the next bytes. Returns whether the response is still within its limit. `declared` returns its declared length, or 0. */
  data(chunk: Buffer, flow: Flow, declared: () => number): boolean {
    const { limit, long, room } = this.taking
    this.size += chunk.length
    if (this.size > limit && !this.isOutlined(flow)) return false
    this.outline?.take(chunk)
    if (this.lost !== undefined) return true
    if (this.all === undefined) this.chunks.push(chunk)
    else chunk.copy(this.all, this.size - chunk.length)
    if (this.size > shortAnswerMax && this.outline === undefined && long !== undefined) this.outlined(long)
    if (room === undefined || this.size <= room.held || this.stopWaiting !== undefined) return true
    if (this.size <= shortAnswerMax && room.take(this.size - room.held)) return true
    this.claim(room, Math.max(this.size, Math.min(declared() || limit, limit)), flow)
    return true
  }

  end(): Taken {
    this.stop()
    const { chunks, lost, outline, size } = this
    const body = this.all?.subarray(0, size) ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    this.taking.room?.become(body.length)
    return { body, outline, lost }
  }

  /** Releases the room of a response that broke off, for another attempt. */
  cut(): void {
    this.stop()
    this.taking.room?.become(this.before)
  }

  private stop(): void {
    this.stopWaiting?.()
    this.stopWaiting = undefined
  }

  private outlined(long: LongMembers): void {
    this.outline = new JsonOutline(long)
    // The room may have been claimed before the response became long.
    for (const chunk of this.all === undefined ? this.chunks : [this.all.subarray(0, this.size)])
      this.outline.take(chunk)
  }

  private claim(room: Room, bytes: number, flow: Flow): void {
    this.stopWaiting = room.claim(bytes, (granted) => {
      // The response may have broken off in the meantime.
      if (this.stopWaiting === undefined) return
      this.stopWaiting = undefined
      if (granted) this.moved(bytes)
      else this.drop("no_room")
      flow.resume()
    })
    if (this.stopWaiting === undefined) this.moved(bytes)
    else flow.pause()
  }

  /** Moves the response into one buffer. Unwritten pages take no memory. */
  private moved(bytes: number): void {
    const all = Buffer.allocUnsafeSlow(bytes)
    Buffer.concat(this.chunks).copy(all)
    this.chunks = []
    this.all = all
  }

  /** Drops the bytes of a response beyond its limit. Returns whether its outline continues. */
  private isOutlined(flow: Flow): boolean {
    if (this.outline === undefined || this.size > outlinedMax) return false
    if (this.lost === "too_long") return true
    if (this.stopWaiting !== undefined) {
      this.stop()
      flow.resume()
    }
    this.drop("too_long")
    return true
  }

  private drop(lost: Lost): void {
    this.lost = lost
    const { long, room } = this.taking
    if (long !== undefined && this.outline === undefined) this.outlined(long)
    this.chunks = []
    this.all = undefined
    room?.become(0)
  }
}
