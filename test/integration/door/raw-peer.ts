import { createConnection, type Socket } from "node:net";

/** A bare socket under the test's control: what it sends is exactly what is said. */
export interface RawPeer {
  readonly socket: Socket;
  send(data: string | Buffer): void;
  /** The next line, without the newline; rejects when the connection ends first. */
  line(): Promise<string>;
  /** Resolves with everything not yet taken, when the door has ended the connection. */
  rest(): Promise<string>;
}

/** Connects to a Unix socket. */
export function connectRaw(socketPath: string): Promise<RawPeer> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path: socketPath, allowHalfOpen: true });
    let buffered = "";
    let isEnded = false;
    let wake = () => {};
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      buffered += text;
      wake();
    });
    const finish = () => {
      isEnded = true;
      wake();
    };
    socket.on("end", finish);
    socket.on("close", finish);
    socket.on("error", reject);
    const changed = () =>
      new Promise<void>((done) => {
        wake = done;
      });
    socket.once("connect", () =>
      resolve({
        socket,
        send: (data) => void socket.write(data),
        async line() {
          for (;;) {
            const end = buffered.indexOf("\n");
            if (end !== -1) {
              const text = buffered.slice(0, end);
              buffered = buffered.slice(end + 1);
              return text;
            }
            if (isEnded) throw new Error(`the connection ended; left: ${buffered}`);
            await changed();
          }
        },
        async rest() {
          while (!isEnded) await changed();
          const text = buffered;
          buffered = "";
          return text;
        },
      }),
    );
  });
}
