/**
 * Collects an upstream's complete response within the call's byte budget (`Room`). If too few bytes are free for a long response, the upstream is
 * paused. If they do not become free in time, the response's bytes are dropped, but the outline still contains its usage.
 */
import { JsonOutline } from "../../kernel/JsonOutline.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import type { Room } from "../../kernel/Room.ts"
import { gistOf } from "../../protocols/conversation/Gist.ts"

/** The maximum length in bytes of a response that is parsed on the main thread. */
export const parsedMax = 256 * 1024
/** The maximum length in bytes of a response that reserves memory chunk by chunk. A longer response claims the rest in one step. */
const shortAnswerMax = 1024 * 1024
/** The maximum length in bytes of a response that is read for its outline. */
const outlinedMax = 1024 * 1024 * 1024

/** The reason why a response's bytes were dropped. */
export type Lost = "no_room" | "too_long"

export interface Taking {
  /** The maximum number of bytes to store. A longer response is a failure, and only its outline is stored, if it has one. */
  readonly limit: number
  /** The room for the response; unlimited if absent. */
  readonly room?: Room | undefined
  /** The members that are empty in the outline of a long response. If absent, there is no outline. */
  readonly long?: LongMembers | undefined
}

interface Flow {
  readonly pause: () => void
  readonly resume: () => void
}

export interface Taken {
  /** Empty if the bytes were dropped. */
  readonly body: Buffer
  /** Present if the response is long or was dropped, and its long members are known. */
  readonly outline: JsonOutline | undefined
  readonly lost: Lost | undefined
}

/** Returns the members of a response that report its usage, even if the response is long, was dropped or is not JSON. */
export const reportsIn = ({ body, outline }: Taken): Readonly<Record<string, unknown>> =>
  outline === undefined ? gistOf(body).object : (outline.value ?? gistOf(outline.bytes).object)

export class Intake {
  private readonly taking: Taking
  /** The number of bytes in the room at the start. */
  private readonly before: number
  private chunks: Array<Buffer> = []
  /** The response in one buffer, once its memory was claimed. Collecting chunks and copying them at the end would need twice the memory. */
  private all: Buffer | undefined
  private size = 0
  private outline: JsonOutline | undefined
  private lost: Lost | undefined
  private stopWaiting: (() => void) | undefined

  constructor(taking: Taking) {
    this.taking = taking
    this.before = taking.room?.held ?? 0
  }

  /** Takes the next chunk. Returns `false` if the response must be aborted. `declared` returns its declared length in bytes, or 0. */
  data(chunk: Buffer, flow: Flow, declared: () => number): boolean {
    const { limit, long, room } = this.taking
    this.size += chunk.length
    if (this.size > limit && !this.isOutlined(flow)) return false
    this.outline?.take(chunk)
    if (this.lost !== undefined) return true
    if (this.all === undefined) this.chunks.push(chunk)
    else chunk.copy(this.all, this.size - chunk.length)
    if (this.size > parsedMax && this.outline === undefined && long !== undefined) this.outlined(long)
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

  /** Releases the memory of a response that ended early, for another attempt. */
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
    // The memory may have been claimed before the response became long.
    for (const chunk of this.all === undefined ? this.chunks : [this.all.subarray(0, this.size)])
      this.outline.take(chunk)
  }

  private claim(room: Room, bytes: number, flow: Flow): void {
    this.stopWaiting = room.claim(bytes, (granted) => {
      // The response may have ended early in the meantime.
      if (this.stopWaiting === undefined) return
      this.stopWaiting = undefined
      if (granted) this.moved(bytes)
      else this.drop("no_room")
      flow.resume()
    })
    if (this.stopWaiting === undefined) this.moved(bytes)
    else flow.pause()
  }

  /** Moves the response into one buffer. The buffer's pages take no memory until they are written. */
  private moved(bytes: number): void {
    const all = Buffer.allocUnsafeSlow(bytes)
    Buffer.concat(this.chunks).copy(all)
    this.chunks = []
    this.all = all
  }

  /** Drops the bytes of a response beyond its limit. Returns whether its outline can continue. */
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
