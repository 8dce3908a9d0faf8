/** The transcriptions' task for the long-body thread, and its result. `ThreadWork` performs it. */
import type { Task } from "../threads/Task.ts"
import type { Subtitles } from "./Formats.ts"
import type { TranscriptionChoice } from "./Transcription.ts"

/** Reads a provider's response. */
export interface ReadTranscriptTask extends Task<TranscriptDone> {
  readonly how: "read_transcript"
  readonly detail: TranscriptionChoice["detail"]
}

export interface TranscriptDone {
  /** The defect that makes the response unusable. */
  readonly fault: string | undefined
  readonly text: string
  readonly usage: unknown
  /** The subtitles, if the task requires segments. */
  readonly subtitles: Subtitles | undefined
  /** The response's JSON, handed back to the main thread. */
  readonly body: Uint8Array
}
