/**
 * Collects a whole answer of an upstream within the room of its call. While there is no room for a long answer, its upstream is paused. If
 * there is no room in time, the bytes are dropped, and the outline still gives the cost.
 */
import { JsonOutline } from "../../kernel/JsonOutline.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import type { Room } from "../../kernel/Room.ts"
import { gistOf } from "../../protocols/conversation/Gist.ts"

/** A longer answer is a long one: it is not parsed on the main thread. */
export const shortAnswerMax = 1024 * 1024
/** An outlined answer is read up to this length. */
const outlinedMax = 1024 * 1024 * 1024

/** Why the bytes of an answer were dropped. */
export type Lost = "no_room" | "too_long"

export interface Taking {
  /** The longest answer that is kept, in bytes. A longer one is a failure, unless it has an outline: then only its outline is kept. */
  readonly limit: number
  /** Without it there is room for every answer. */
  readonly room?: Room | undefined
  /** The members that the outline of a long answer leaves empty. Without it no outline is made. */
  readonly long?: LongMembers | undefined
}

/** The source of an answer. */
interface Flow {
  readonly pause: () => void
  readonly resume: () => void
}

export interface Taken {
  /** Empty if the bytes were dropped. */
  readonly body: Buffer
  /** The outline of an answer that is long or was dropped. */
  readonly outline: JsonOutline | undefined
  readonly lost: Lost | undefined
}

/** The members that an answer reports something in, also if it is long, was dropped, or is no JSON. */
export const reportsIn = ({ body, outline }: Taken): Readonly<Record<string, unknown>> =>
  outline === undefined ? gistOf(body).object : (outline.value ?? gistOf(outline.bytes).object)

export class Intake {
  private readonly taking: Taking
  /** Bytes that the room held at the start. */
  private readonly before: number
  private chunks: Array<Buffer> = []
  /** The whole answer, once its room was claimed: chunks and a copy of them would need twice as much. */
  private all: Buffer | undefined
  private size = 0
  private outline: JsonOutline | undefined
  private lost: Lost | undefined
  private stopWaiting: (() => void) | undefined

  constructor(taking: Taking) {
    this.taking = taking
    this.before = taking.room?.held ?? 0
  }

  /** Takes the next bytes. Answers whether the answer is still within its limit. `declared` is its length, or 0. */
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

  /** The answer broke off: gives its room to another try. */
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
    // The room may have been claimed before the answer was long.
    for (const chunk of this.all === undefined ? this.chunks : [this.all.subarray(0, this.size)])
      this.outline.take(chunk)
  }

  private claim(room: Room, bytes: number, flow: Flow): void {
    this.stopWaiting = room.claim(bytes, (granted) => {
      // The answer may have broken off since.
      if (this.stopWaiting === undefined) return
      this.stopWaiting = undefined
      if (granted) this.moved(bytes)
      else this.drop("no_room")
      flow.resume()
    })
    if (this.stopWaiting === undefined) this.moved(bytes)
    else flow.pause()
  }

  /** Moves the answer into one buffer. Unwritten pages take no memory. */
  private moved(bytes: number): void {
    const all = Buffer.allocUnsafeSlow(bytes)
    Buffer.concat(this.chunks).copy(all)
    this.chunks = []
    this.all = all
  }

  /** Drops the bytes of an answer beyond its limit. Answers whether the outline goes on. */
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
