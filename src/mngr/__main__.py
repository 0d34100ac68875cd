from mngr.cli.main import program

program()
