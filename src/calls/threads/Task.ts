/** The form of all tasks of the thread for long bodies. Each room defines its own tasks and their results. */

/** A task. `Done` is the type of its result. */
export interface Task<Done extends object> {
  /** The name of the function that does the task. `calls/BodyThread` lists them. */
  readonly how: string
  /** The bytes that move to the thread. They cannot be empty. */
  readonly body: Uint8Array
  /** More bytes that move to the thread. */
  readonly beside?: Uint8Array | undefined
  /** Never set. It connects a task's type to the type of its result. */
  readonly done?: Done
}

/** The thread could not do a task, because its code threw an error with this message. */
export interface Failed {
  readonly failed: string
}

/** The members of an `InvalidRequest`. An error would lose them on its way to another thread. */
export interface Refusal {
  readonly message: string
  readonly field: string
  readonly rule: string
}

export const refusalOf = ({ field, message, rule }: Refusal): Refusal => ({ field, message, rule })

/** A task's result, and its buffers that move to the main thread. */
export type Outcome<Done extends object> = readonly [done: Done, moved: ReadonlyArray<Uint8Array>]

/** A function of the thread, for any task. */
export type AnyWork = (task: never) => Outcome<object>

/** A function of the thread. */
export type Work<T extends Task<object>> = (task: T) => Outcome<NonNullable<T["done"]>>

/** Wraps bytes that another thread has sent. */
export const bufferOf = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
